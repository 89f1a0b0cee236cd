package main

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// verdict is what is to be done about an object.
type verdict int

const (
	done verdict = iota
	again
	write
)

// tally counts what was reconciled; the twin of bench/src/controller/tally.rs.
type tally struct {
	writes  bool
	widgets []seen

	settled, expected atomic.Int64
	allDone           chan int64

	mutex     sync.Mutex
	latencies []int64

	spins   atomic.Int64
	stopped atomic.Bool
}

// seen holds the writes of an object that were seen last, by their times.
type seen struct{ first, settled atomic.Int64 }

func newTally(workload string, objects int) *tally {
	tally := &tally{
		writes:    workload == "status",
		widgets:   make([]seen, objects),
		allDone:   make(chan int64, 1),
		latencies: make([]int64, 0, objects),
	}
	for index := range tally.widgets {
		tally.widgets[index].first.Store(-1)
		tally.widgets[index].settled.Store(-1)
	}
	tally.expected.Store(int64(objects))
	return tally
}

// judge reconciles an object.
func (tally *tally) judge(widget *Widget) verdict {
	mark, at := widget.Annotations[written], int64(0)
	if phase, text, marked := strings.Cut(mark, "/"); marked {
		if phase == "spin" {
			return tally.spin()
		}
		var err error
		if at, err = strconv.ParseInt(text, 10, 64); err != nil {
			panic(err)
		}
	}
	seen := &tally.widgets[widget.Spec.Size]
	if seen.first.Swap(at) != at && at > 0 {
		late := time.Now().UnixNano() - at
		tally.mutex.Lock()
		tally.latencies = append(tally.latencies, late)
		tally.mutex.Unlock()
	}
	if tally.writes && widget.Status.Written != mark {
		return write
	}
	if seen.settled.Swap(at) != at && tally.settled.Add(1) == tally.expected.Load() {
		tally.allDone <- time.Now().UnixNano()
	}
	return done
}

func (tally *tally) spin() verdict {
	tally.spins.Add(1)
	if tally.stopped.Load() {
		return done
	}
	return again
}

// expect expects so many objects to be done with from now on.
func (tally *tally) expect(objects int) {
	tally.expected.Store(int64(objects))
	tally.settled.Store(0)
	tally.mutex.Lock()
	defer tally.mutex.Unlock()
	tally.latencies = tally.latencies[:0]
}

// sorted is how late the objects were that were expected, in order.
func (tally *tally) sorted() []int64 {
	tally.mutex.Lock()
	defer tally.mutex.Unlock()
	latencies := slices.Clone(tally.latencies)
	slices.Sort(latencies)
	return latencies
}
