package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoints are what a run answers over HTTP.
type endpoints struct {
	metrics *metrics
	watch   *watch
	ready   func() readiness
	log     *slog.Logger
}

// serve begins to answer at the address; the function it returns lets the
// requests in work end, and waits for that. An address that is taken is an error,
// before anything has been started.
func (e *endpoints) serve(ctx context.Context, address string) (stop func(), err error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http.listen (ONCESTREAM_HTTP, --http): %w", err)
	}
	server := &http.Server{
		Handler: e.handler(), ReadHeaderTimeout: httpTimeout, WriteTimeout: 2 * httpTimeout,
		ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1) // so that Serve can end although nobody waits yet
	go func() { done <- server.Serve(listener) }()
	e.log.LogAttrs(ctx, slog.LevelInfo, "answering over HTTP", slog.String("address", listener.Addr().String()))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // whoever still reads has had his time
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			e.log.LogAttrs(ctx, slog.LevelWarn, "answering over HTTP has ended early", slog.Any("reason", err))
		}
	}, nil
}

// httpTimeout is how long a client may take to ask, and a request at the stop to
// end.
const httpTimeout = 5 * time.Second

func (e *endpoints) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelWarn)}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.HandleFunc("GET /status", e.status)
	return mux
}

// readyz answers for an orchestrator, which may only restart or route: 503 where
// that could help, see readiness. The body is for people.
func (e *endpoints) readyz(w http.ResponseWriter, _ *http.Request) {
	r := e.ready()
	if !r.ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, r.text)
}

// status answers with the last look, which is of all partitions of the group; it
// asks nobody, so it costs nothing.
func (e *endpoints) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	look := e.watch.latest()
	if look.At.IsZero() {
		w.WriteHeader(http.StatusServiceUnavailable)
		look.Error = "nothing was looked at yet"
	}
	if err := json.NewEncoder(w).Encode(look); err != nil {
		e.log.LogAttrs(context.Background(), slog.LevelDebug, "a reader of /status has gone", slog.Any("reason", err))
	}
}
