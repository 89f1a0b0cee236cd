// The benchmark's side in Go: what bench/src/informer/subject.rs, queue.rs and
// bench/src/controller/subject.rs measure of the systems written in Rust, this program measures
// of client-go and controller-runtime, in the same order and with the same lines on standard
// output (bench/src/processes/wire.rs).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "controller" {
		order, err := readOrder(arguments[1:])
		if err != nil {
			return err
		}
		return measureController(order)
	}
	if len(arguments) != 3 {
		return fmt.Errorf("usage: informer KUBECONFIG UPDATES | queue OPERATIONS DELAYED | controller …")
	}
	last, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "informer":
		return measureInformer(arguments[1], last)
	case "queue":
		operations, err := strconv.Atoi(arguments[1])
		if err != nil {
			return err
		}
		measureQueue(operations, last)
		return nil
	}
	return fmt.Errorf("unknown measurement %q", arguments[0])
}

// tell prints one line for the benchmark.
func tell(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // only strings and numbers are told
	}
	fmt.Println(string(text))
}

// figure tells what was measured.
func figure(metric string, value float64) {
	tell(map[string]any{"figure": map[string]any{"metric": metric, "value": value}})
}
