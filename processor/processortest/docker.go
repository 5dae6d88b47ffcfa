//go:build unix

package processortest

import (
	"context"
	"errors"
)

func dockerAnswers(context.Context) error { return errors.New("later") }
func newContainer(context.Context, BrokerOptions) (machine, layout, error) {
	return nil, layout{}, errors.New("later")
}
