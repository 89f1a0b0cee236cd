package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	producers = 8
	workers   = 8
	keySpace  = 10_000
	spread    = time.Second
)

// measureQueue measures a rate limiting queue, which is what controllers use.
func measureQueue(operations, delayed int) {
	rate := func(took time.Duration) float64 { return float64(operations) / took.Seconds() }
	figure("queue_ops_per_second", rate(throughput(operations, false)))
	figure("queue_flood_per_second", rate(throughput(operations, true)))
	figure("queue_delayed_seconds", delayedKeys(delayed).Seconds())
}

// work is a queue and its workers.
type work struct {
	queue       workqueue.TypedRateLimitingInterface[string]
	taken, done atomic.Int64
	// Which of the repeating keys were added and not done yet.
	underWay [keySpace]atomic.Bool
	workers  sync.WaitGroup
}

func startWork() *work {
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	work := &work{queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	for range workers {
		work.workers.Go(func() {
			for {
				key, shutDown := work.queue.Get()
				if shutDown {
					return
				}
				work.taken.Add(1)
				work.queue.Done(key)
				if number := number(key); number < keySpace {
					work.underWay[number].Store(false)
				}
				work.done.Add(1)
			}
		})
	}
	return work
}

func (work *work) stop() {
	work.queue.ShutDown()
	work.workers.Wait()
}

func key(number int) string {
	return fmt.Sprintf("namespace-%d/pod-%d", number%50, number)
}

// number is the number in a key.
func number(key string) int {
	number, err := strconv.Atoi(key[strings.LastIndexByte(key, '-')+1:])
	if err != nil {
		panic(err)
	}
	return number
}

// throughput is the time until all keys were added and worked on. In a flood a key is added even
// if it is under way; otherwise every operation is an add, a get and a done.
func throughput(operations int, flood bool) time.Duration {
	work := startWork()
	start := time.Now()
	var producing sync.WaitGroup
	for producer := range producers {
		producing.Go(func() { work.produce(producer, operations/producers, flood) })
	}
	producing.Wait()
	for work.queue.Len() > 0 || work.taken.Load() != work.done.Load() {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	work.stop()
	return took
}

// produce adds keys that no other producer adds.
func (work *work) produce(producer, left int, flood bool) {
	var keys []string
	for number := producer; number < keySpace; number += producers {
		keys = append(keys, key(number))
	}
	for turn := 0; left > 0; turn++ {
		at := turn % len(keys)
		idle := !work.underWay[producer+at*producers].Swap(true)
		if idle || flood {
			work.queue.Add(keys[at])
			left--
		}
		if turn%64 == 0 {
			runtime.Gosched()
		}
	}
}

// delayedKeys is the time from the first delayed key until all were worked on.
func delayedKeys(count int) time.Duration {
	work := startWork()
	start := time.Now()
	for number := range count {
		work.queue.AddAfter(key(number), time.Duration(float64(spread)*float64(number+1)/float64(count)))
	}
	for work.done.Load() < int64(count) {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	work.stop()
	return took
}
