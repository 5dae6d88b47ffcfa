package main

import (
	"context"

	"github.com/oncestream/oncestream/processor"
)

// sight is all that an operator sees of a run: the metrics, the watch with its
// warnings, and the endpoints where the configuration asks for them.
type sight struct {
	app     *app
	config  *config
	file    string
	metrics *metrics
	watch   *watch
	gate    gate
}

func (a *app) newSight(c *config, file string) *sight {
	m := newMetrics(c.name, c.engine.Kafka.Topic)
	return &sight{app: a, config: c, file: file, metrics: m, watch: &watch{config: c, log: a.log, metrics: m}}
}

func (s *sight) hooks() processor.Hooks { return joinHooks(s.metrics.hooks(), s.gate.hooks()) }

// start starts to look and to answer. The function it returns ends both; it is
// called when the run has ended, so that the last scrape sees its drain.
func (s *sight) start(ctx context.Context) (stop func(), err error) {
	stopHTTP := func() {}
	if address := s.config.http.listen; address != "" {
		e := &endpoints{metrics: s.metrics, watch: s.watch, log: s.app.log, ready: func() readiness { return s.gate.ready(ctx, s.judge) }}
		if stopHTTP, err = e.serve(ctx, address); err != nil {
			return nil, err
		}
	}
	stopWatch, err := s.watch.start(ctx)
	if err != nil {
		stopHTTP()
		return nil, err
	}
	return func() {
		stopWatch()
		stopHTTP()
	}, nil
}

func (s *sight) judge() readiness {
	return readinessOf(s.config.engine.Kafka.Topic, s.file, s.metrics.board.asks())
}
