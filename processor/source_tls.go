package processor

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
)

// encryption says how connections to the brokers are made: in plain text, with
// one configuration for all of them, or with one that is asked for each time.
func (k Kafka) encryption() []kgo.Opt {
	switch {
	case k.RenewTLS != nil:
		return []kgo.Opt{kgo.Dialer(k.dialRenewed)}
	case k.TLS != nil:
		return []kgo.Opt{kgo.DialTLSConfig(k.TLS)}
	}
	return nil
}

// dialRenewed asks for the configuration before each connection. A connection
// that is open goes on under its own: it is the next one, after the broker or the
// network has ended it, that must not begin with a certificate of before.
func (k Kafka) dialRenewed(ctx context.Context, network, address string) (net.Conn, error) {
	config, err := k.RenewTLS()
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: config}
	return dialer.DialContext(ctx, network, address)
}
