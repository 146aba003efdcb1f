// CPU time in which Go programs render one of many series with three labels to a page, without
// HTTP: Prometheus' own client, and VictoriaMetrics' one.
package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

const nSeries = 100000
const nRounds = 3

func path(i int) string {
	return fmt.Sprintf("/api/v1/item/%06d", i)
}

// All threads, so the garbage collector's, too.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	seconds := usage.Utime.Sec + usage.Stime.Sec
	return float64(seconds) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func prometheusClient() func(io.Writer) {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: "bench_requests_total", Help: "Requests."},
		[]string{"method", "path", "node"})
	registry.MustRegister(requests)
	for i := 0; i < nSeries; i++ {
		requests.WithLabelValues("GET", path(i), "edge-17").Add(float64(i))
	}
	return func(out io.Writer) {
		families, err := registry.Gather()
		if err != nil {
			panic(err)
		}
		encoder := expfmt.NewEncoder(out, expfmt.FmtText)
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				panic(err)
			}
		}
	}
}

func victoriaMetrics() func(io.Writer) {
	set := metrics.NewSet()
	for i := 0; i < nSeries; i++ {
		name := fmt.Sprintf(`bench_requests_total{method="GET",path=%q,node="edge-17"}`, path(i))
		set.NewCounter(name).Set(uint64(i))
	}
	return set.WritePrometheus
}

func main() {
	clients := map[string]func() func(io.Writer){
		"prometheus":      prometheusClient,
		"victoriametrics": victoriaMetrics,
	}
	render := clients[os.Args[1]]()
	render(io.Discard)
	begin := cpuSeconds()
	for round := 0; round < nRounds; round++ {
		render(io.Discard)
	}
	fmt.Println((cpuSeconds() - begin) / nRounds / nSeries)
}
