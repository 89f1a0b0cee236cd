package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// memory reads a field of /proc/self/status, in bytes.
func memory(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			kilobytes, err := strconv.ParseFloat(words[1], 64)
			if err != nil {
				panic(err)
			}
			return kilobytes * 1024
		}
	}
	panic(fmt.Sprintf("no %s", field))
}

// computed is the time this process has computed, on all cores, in seconds.
func computed() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	seconds := func(time syscall.Timeval) float64 {
		return float64(time.Sec) + float64(time.Usec)/1e6
	}
	return seconds(usage.Utime) + seconds(usage.Stime)
}
