package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/offsets"
)

// A client of franz-go never takes up the new id of a topic that was deleted and
// created again: it fetches by the old one and is refused for ever. So a session
// (the group, its workers, the identity that claims are taken with) is of one
// topic. When another one has come under the name, the session ends and the run
// begins the next one: there the ledger refuses each claim, since its positions
// are of the former topic, until a person adopts the new one.

// otherTopicError ends a session.
type otherTopicError struct{ was, is offsets.Identity }

func (o *otherTopicError) Error() string {
	return fmt.Sprintf("the topic is %s now, and was %s", o.is, o.was)
}

// guardTopic ends the session, with its error, when the topic is another one. It
// looks when something makes it suspicious, and now and then: a broker before
// 3.1 fetches by name and has nothing to refuse.
func (e *engine) guardTopic(ctx context.Context) error {
	ticker := time.NewTicker(guardEvery)
	defer ticker.Stop()
	missing := false
	for {
		id, err := e.source.identity(ctx)
		switch gone := errors.Is(err, ErrNoTopic); {
		case ctx.Err() != nil:
			return nil
		case err == nil && id != e.identity:
			return &otherTopicError{e.identity, id}
		case gone && !missing:
			e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the topic does not exist any more; waiting for it to be created again", slog.String("topic", e.source.topic))
			missing = true
		case err == nil:
			missing = false
		}
		if sleep(ctx, guardPause) != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.suspicion:
		case <-ticker.C:
		}
	}
}

const (
	guardEvery = 15 * time.Second
	guardPause = 200 * time.Millisecond
)

// suspect has guardTopic look at once. One waiting signal stands for all.
func (e *engine) suspect() {
	select {
	case e.suspicion <- struct{}{}:
	default:
	}
}

// identity asks which topic is there now: the brokers themselves, since kadm answers
// from what the client has learned within some seconds, and the former topic with it.
func (s *groupSource) identity(ctx context.Context) (offsets.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &s.topic
	request.Topics = append(request.Topics, asked)
	meta, err := request.RequestWith(ctx, s.kafka())
	switch {
	case err != nil:
		return offsets.Identity{}, fmt.Errorf("processor: ask for the identity of topic %s: %w", s.topic, err)
	case len(meta.Topics) != 1:
		return offsets.Identity{}, fmt.Errorf("processor: topic %q: %w", s.topic, ErrNoTopic)
	}
	detail := meta.Topics[0]
	switch err := kerr.ErrorForCode(detail.ErrorCode); {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return offsets.Identity{}, fmt.Errorf("processor: topic %q: %w", s.topic, ErrNoTopic)
	case err != nil:
		return offsets.Identity{}, fmt.Errorf("processor: topic %q: %w", s.topic, err)
	}
	id := offsets.Identity{TopicID: detail.TopicID}
	if meta.ClusterID != nil {
		id.ClusterID = *meta.ClusterID
	}
	return id, nil
}

// refuse makes a halt of a refusal.
func (e *engine) refuse(ctx context.Context, r offsets.Refusal) error {
	return e.confirm(ctx, &haltError{r.Code(), r})
}

// confirm answers with the halt, unless it is this session that knows an old topic:
// then it waits for the session to end. A log of another topic may look like one
// that was cut; to set the position back would be the wrong remedy.
func (e *engine) confirm(ctx context.Context, halt *haltError) error {
	id, err := e.source.identity(ctx)
	switch {
	case err != nil:
		return err
	case id != e.identity:
		e.suspect()
		return &otherTopicError{e.identity, id}
	}
	return halt
}
