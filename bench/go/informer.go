package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	written  = "bench.steersman.dev/written"
	byNode   = "by-node"
	nodes    = 500
	handlers = 4
	settle   = 3 * time.Second
	hot      = 100
	hotReads = 1_000_000
	cold     = 5_000
)

// measureInformer measures a shared informer with default settings.
func measureInformer(kubeconfig string, updates int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	before, startComputed, start := memory("VmRSS:"), computed(), time.Now()
	stop := context.Background().Done()
	go informer.Run(stop)
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	figure("sync_seconds", time.Since(start).Seconds())
	figure("sync_cpu_seconds", computed()-startComputed)
	figure("peak_bytes", memory("VmHWM:"))
	// What Go would free by and by is freed at once, so that only what is needed counts.
	runtime.GC()
	debug.FreeOSMemory()
	time.Sleep(settle)
	count := len(informer.GetStore().ListKeys())
	figure("pods", float64(count))
	figure("bytes_per_object", (memory("VmRSS:")-before)/float64(count))
	if err := lists(informer, count); err != nil {
		return err
	}
	reads(informer.GetStore())
	return hear(informer, updates)
}

// lists lists the Pods of every node.
func lists(informer cache.SharedIndexInformer, count int) error {
	err := informer.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err != nil {
		return err
	}
	names := make([]string, nodes)
	for number := range names {
		names[number] = fmt.Sprintf("node-%03d", number)
	}
	found, start := 0, time.Now()
	for _, name := range names {
		objects, err := informer.GetIndexer().ByIndex(byNode, name)
		if err != nil {
			return err
		}
		found += len(objects)
	}
	took := time.Since(start)
	if found != count {
		return fmt.Errorf("%d Pods are on nodes, of %d", found, count)
	}
	figure("index_list_us", float64(took.Nanoseconds())/1e3/nodes)
	return nil
}

// reads reads Pods that were not read before, and some Pods often.
func reads(store cache.Store) {
	keys := store.ListKeys()
	keys = keys[:min(cold, len(keys))]
	start := time.Now()
	for _, key := range keys {
		mustGet(store, key)
	}
	figure("cold_get_ns", float64(time.Since(start).Nanoseconds())/float64(len(keys)))
	few := keys[max(0, len(keys)-hot):]
	rounds := hotReads / len(few)
	start = time.Now()
	for range rounds {
		for _, key := range few {
			mustGet(store, key)
		}
	}
	figure("get_ns", float64(time.Since(start).Nanoseconds())/float64(rounds*len(few)))
}

func mustGet(store cache.Store, key string) *corev1.Pod {
	object, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		panic(key)
	}
	return object.(*corev1.Pod)
}

// ear is a handler that counts what it hears and notes how late it was.
type ear struct {
	expected  int
	latencies []int64
	finished  chan<- []int64
}

func (ear *ear) hear(object any) {
	mark := object.(*corev1.Pod).Annotations[written]
	_, text, marked := strings.Cut(mark, "/")
	if !marked {
		return
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	ear.latencies = append(ear.latencies, time.Now().UnixNano()-at)
	if len(ear.latencies) == ear.expected {
		ear.finished <- ear.latencies
		ear.latencies = make([]int64, 0, ear.expected)
	}
}

// hear adds handlers and waits until they have heard of every write of both phases.
func hear(informer cache.SharedIndexInformer, updates int) error {
	finished := make(chan []int64, handlers)
	var synced sync.WaitGroup
	for range handlers {
		ear := &ear{updates, make([]int64, 0, updates), finished}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    ear.hear,
			UpdateFunc: func(_, object any) { ear.hear(object) },
		})
		if err != nil {
			return err
		}
		synced.Go(func() {
			for !registration.HasSynced() {
				time.Sleep(time.Millisecond)
			}
		})
	}
	synced.Wait()
	for _, phase := range []string{"patches", "burst"} {
		tell(map[string]any{"await": phase})
		var latencies []int64
		for range handlers {
			latencies = append(latencies, <-finished...)
		}
		at := time.Now().UnixNano()
		tell(map[string]any{"heard": map[string]any{"phase": phase, "at": at}})
		if phase == "patches" {
			sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
			figure("update_p50_ms", percentile(latencies, 0.50))
			figure("update_p99_ms", percentile(latencies, 0.99))
		}
	}
	return nil
}

// percentile is the value below which this share of sorted nanoseconds lies, in milliseconds.
func percentile(sorted []int64, share float64) float64 {
	return float64(sorted[int(float64(len(sorted)-1)*share+0.5)]) / 1e6
}
