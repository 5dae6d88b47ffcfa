package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// target says where positions go: one place for all partitions, or one for each.
type target struct {
	all  string           // a number or a word
	each map[int32]string // the same by partition
	time time.Time
	// at is what the brokers have for the time.
	at map[int32]int64
}

// targetWords are the places that have a name, beside numbers.
func targetWords(action offsets.Action) []string {
	more := map[offsets.Action][]string{offsets.Rewind: {"stored"}, offsets.Skip: {"next"}, offsets.Adopt: {"stored"}}
	return append([]string{"earliest", "latest"}, more[action]...)
}

func parseTarget(action offsets.Action, f *changeFlags) (target, error) {
	var t target
	words := targetWords(action)
	isPlace := func(text string) bool {
		_, err := parseOffset(text)
		return err == nil || slices.Contains(words, text)
	}
	switch {
	case f.toTime != "":
		var err error
		if t.time, err = time.Parse(time.RFC3339, f.toTime); err != nil {
			return t, usagef("--to-time: must be a time such as 2026-01-31T08:00:00Z (got %q)", f.toTime)
		}
		return t, nil
	case f.toOffset == "":
		return t, nil
	case isPlace(f.toOffset):
		t.all = f.toOffset
		return t, nil
	}
	t.each = map[int32]string{}
	for _, item := range splitList(f.toOffset) {
		left, right, _ := strings.Cut(item, "=")
		partition, err := strconv.ParseUint(left, 10, 31)
		if _, twice := t.each[int32(partition)]; err != nil || twice || !isPlace(right) {
			return t, usagef("--to-offset: must be an offset, %s, or partition=offset,… with each partition once (got %q)", strings.Join(words, ", "), f.toOffset)
		}
		t.each[int32(partition)] = right
	}
	return t, nil
}

// ask asks the brokers what a time means.
func (t *target) ask(ctx context.Context, s *standing) (err error) {
	if !t.time.IsZero() {
		t.at, err = s.lookout.OffsetsAt(ctx, t.time)
	}
	return err
}

// offset is where one partition goes.
func (t *target) offset(r processor.PartitionRange, stored int64) (int64, bool) {
	place := t.all
	if t.each != nil {
		place = t.each[r.Partition]
	}
	switch {
	case t.at != nil:
		offset, ok := t.at[r.Partition]
		return offset, ok
	case place == "earliest":
		return r.Start, true
	case place == "latest":
		return r.End, true
	case place == "stored":
		return stored, true
	case place == "next":
		return stored + 1, true
	}
	offset, err := parseOffset(place)
	return offset, err == nil
}

// changes are the changes that were asked for. Where no partition was named,
// those are left as they are that stand where they should already, or beyond:
// left says so, a line each.
func (s *standing) changes(action offsets.Action, t target, f *changeFlags) (changes []offsets.Change, left []string, err error) {
	named := t.named(f.partitions)
	chosen := named
	if len(named) == 0 {
		for _, p := range s.progress {
			chosen = append(chosen, p.Partition)
		}
	}
	for _, n := range chosen {
		r, stored, inTopic, _ := s.partition(n)
		to, ok := t.offset(r, stored.Next)
		switch {
		case !inTopic && len(named) > 0:
			return nil, nil, usagef("--partition: topic %s has %d partitions (got %d)", s.topic.Name, len(s.topic.Partitions), n)
		case !inTopic:
			left = append(left, fmt.Sprintf("partition %d is not in the topic that is there now: left as it is, at %d", n, stored.Next))
		case !ok:
			return nil, nil, usagef("--to-offset: partition %d is named, and has no offset", n)
		case len(named) == 0 && s.there(action, stored, to):
			left = append(left, fmt.Sprintf("partition %d is left as it is, at %d", n, stored.Next))
		case (to < r.Start || to > r.End) && (action == offsets.Adopt || s.ours(stored)):
			return nil, nil, fmt.Errorf("%s %s/%d@%d: the log holds [%d, %d): say earliest or latest, or an offset between; %w",
				action, s.topic.Name, n, to, r.Start, r.End, errRefused)
		default:
			changes = append(changes, offsets.Change{Partition: n, Action: action, To: to, Identity: s.identity(), BeyondFloor: f.beyondFloor})
		}
	}
	return changes, left, nil
}

// named are the partitions that the command line names, in order.
func (t *target) named(partitions []int32) []int32 {
	named := slices.Clone(partitions)
	if len(named) == 0 {
		named = slices.AppendSeq(named, maps.Keys(t.each))
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// ours reports whether the stored position is of the topic that is there now.
func (s *standing) ours(stored offsets.Progress) bool { return stored.Identity() == s.identity() }

// there reports whether a change would lead nowhere, or in the other direction.
func (s *standing) there(action offsets.Action, stored offsets.Progress, to int64) bool {
	forward := action == offsets.Skip && to > stored.Next
	back := action == offsets.Rewind && (to < stored.Next || to == stored.Next && stored.State == "halted")
	return s.ours(stored) && !forward && !back
}
