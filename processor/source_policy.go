package processor

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// compacted reports whether the topic forgets records of a record key that has
// later ones: then what is left of it is no history, and what was read of it once
// cannot all be read again.
func (k Kafka) compacted(ctx context.Context) (bool, error) {
	client, err := openPlain(k, impatient())
	if err != nil {
		return false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	configs, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, k.Topic)
	if err == nil {
		var c kadm.ResourceConfig
		if c, err = configs.On(k.Topic, nil); err == nil {
			err = c.Err
		}
		for _, entry := range c.Configs {
			if entry.Key == "cleanup.policy" {
				return strings.Contains(entry.MaybeValue(), "compact"), err
			}
		}
	}
	if err != nil {
		return false, fmt.Errorf("processor: read the configuration of topic %s: %w", k.Topic, err)
	}
	return false, nil
}
