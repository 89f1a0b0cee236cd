// Evaluates rules with cel-go as Kubernetes does: a line with a rule, a schema and an object comes
// in, a line with the time it took goes out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type question struct {
	Rule        string             `json:"rule"`
	Schema      v1.JSONSchemaProps `json:"schema"`
	Object      json.RawMessage    `json:"object"`
	Nanoseconds int64              `json:"nanoseconds"`
}

type answer struct {
	Ready float64 `json:"ready,omitempty"`
	Run   float64 `json:"run,omitempty"`
	Error string  `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		said, err := measure(line)
		if err != nil {
			said.Error = err.Error()
		}
		text, _ := json.Marshal(said)
		fmt.Println(string(text))
	}
}

func measure(line []byte) (said answer, err error) {
	var asked question
	if err = json.Unmarshal(line, &asked); err != nil {
		return
	}
	structural, err := structuralOf(&asked)
	if err != nil {
		return
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compile := func() (cel.CompilationResult, error) {
		results, err := cel.Compile(structural, model.SchemaDeclType(structural, false),
			celconfig.PerCallLimit, base, cel.StoredExpressionsEnvLoader())
		if err != nil {
			return cel.CompilationResult{}, err
		}
		if results[0].Error != nil {
			return results[0], results[0].Error
		}
		return results[0], nil
	}
	turn := time.Duration(asked.Nanoseconds)
	if said.Ready, err = timed(turn, func() error { _, err := compile(); return err }); err != nil {
		return
	}
	compiled, err := compile()
	if err != nil {
		return
	}
	var object map[string]any
	if err = utiljson.Unmarshal(asked.Object, &object); err != nil {
		return
	}
	said.Run, err = timed(turn, func() error {
		variables, err := interpreter.NewActivation(map[string]any{
			"self": cel.UnstructuredToVal(object, structural),
		})
		if err != nil {
			return err
		}
		value, details, err := compiled.Program.ContextEval(context.Background(), variables)
		if err != nil {
			return err
		}
		if details.ActualCost() == nil || value != types.True {
			return errors.New("it does not hold")
		}
		return nil
	})
	return
}

func structuralOf(asked *question) (*schema.Structural, error) {
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&asked.Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	structural.XValidations = v1.ValidationRules{{Rule: asked.Rule}}
	return structural, nil
}

// timed gives how long something takes on average, in microseconds, when it is done for a turn.
func timed(turn time.Duration, work func() error) (float64, error) {
	begin := time.Now()
	for times := 1; ; times++ {
		if err := work(); err != nil {
			return 0, err
		}
		if passed := time.Since(begin); passed >= turn {
			return float64(passed.Nanoseconds()) / 1e3 / float64(times), nil
		}
	}
}
