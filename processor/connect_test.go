//go:build !broker

package processor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a client whose TLS or SASL does not fit the listener ends within
// half a minute with one line that names the likely cause (case H08).
func TestConnectionFaultsAreNamed(t *testing.T) {
	// The test server is only asked for its certificate.
	https := httptest.NewTLSServer(http.NotFoundHandler())
	defer https.Close()
	authorities := x509.NewCertPool()
	authorities.AddCert(https.Certificate())
	trusted := &tls.Config{RootCAs: authorities, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	user := processor.SASL{Mechanism: "SCRAM-SHA-256", User: "u", Password: "right"}

	plain := func(tb testing.TB) *processortest.Cluster { return processortest.Kafka(tb) }
	encrypted := func(tb testing.TB) *processortest.Cluster {
		return processortest.Kafka(tb, processortest.With(kfake.TLS(&tls.Config{Certificates: https.TLS.Certificates, MinVersion: tls.VersionTLS12})))
	}
	signedIn := func(tb testing.TB) *processortest.Cluster {
		return processortest.Kafka(tb, processortest.With(kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "u", "right")))
	}
	tests := map[string]struct {
		cluster func(testing.TB) *processortest.Cluster
		kafka   processor.Kafka
		want    string
	}{
		"plain to TLS":      {encrypted, processor.Kafka{}, "expects TLS"},
		"TLS to plain":      {plain, processor.Kafka{TLS: trusted}, "does not speak TLS"},
		"unknown authority": {encrypted, processor.Kafka{TLS: &tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS12}}, "is not trusted"},
		"no SASL":           {signedIn, processor.Kafka{}, "expects TLS (set tls) or SASL (set sasl)"},
		"wrong password":    {signedIn, processor.Kafka{SASL: processor.SASL{Mechanism: "SCRAM-SHA-256", User: "u", Password: "wrong"}}, "refused the user or the password"},
		"other mechanism":   {signedIn, processor.Kafka{SASL: processor.SASL{Mechanism: "PLAIN", User: "u", Password: "right"}}, "sasl"},
		"nobody there":      {nil, processor.Kafka{Brokers: []string{"127.0.0.1:1"}}, "is a broker running there?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := tt.kafka
			k.Topic = "t"
			if tt.cluster != nil {
				k.Brokers = tt.cluster(t).Addrs()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := processor.InspectTopic(ctx, k)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v\nis not one line with %q", err, tt.want)
			}
			if ctx.Err() != nil {
				t.Error("it took longer than half a minute")
			}
		})
	}
	t.Run("right", func(t *testing.T) {
		c := signedIn(t)
		if _, err := processor.InspectTopic(t.Context(), processor.Kafka{Brokers: c.Addrs(), Topic: "t", SASL: user}); err == nil || !strings.Contains(err.Error(), processor.ErrNoTopic.Error()) {
			t.Errorf("the right password answers %v", err)
		}
	})
}
