package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// authority signs the certificates of one generation.
type authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(tb testing.TB, name string) *authority {
	tb.Helper()
	a := &authority{tb: tb}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key, a.pem = a.sign(template, 1)
	return a
}

// sign signs a certificate; an authority that has none yet signs its own.
func (a *authority) sign(template *x509.Certificate, serial int64) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noErr(a.tb, err)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	noErr(a.tb, err)
	cert, err := x509.ParseCertificate(der)
	noErr(a.tb, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue returns a certificate for 127.0.0.1, and its key.
func (a *authority) issue(serial int64) (cert, key []byte) {
	a.tb.Helper()
	_, private, cert := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "tester"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, serial)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	noErr(a.tb, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// config is that of a server or a client of this generation.
func (a *authority) config(serial int64) *tls.Config {
	a.tb.Helper()
	pair, err := tls.X509KeyPair(a.issue(serial))
	noErr(a.tb, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// tlsListener is a listener whose generation changes while it runs. It counts the
// clients by the number of their certificate, and can cut their connections.
type tlsListener struct {
	net.Listener
	mu      sync.Mutex
	current *tls.Config
	seen    map[int64]int
	open    []net.Conn
}

func (l *tlsListener) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c := l.current.Clone()
		c.VerifyConnection = func(state tls.ConnectionState) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen[state.PeerCertificates[0].SerialNumber.Int64()]++
			return nil
		}
		return c, nil
	}}
}

func (l *tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = append(l.open, conn)
	}
	return conn, err
}

// renew begins a generation and ends the connections of the one before.
func (l *tlsListener) renew(c *tls.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = c
	for _, conn := range l.open {
		_ = conn.Close()
	}
	l.open = nil
}

func (l *tlsListener) count(serial int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[serial]
}

// newTLSListener listens on a free port.
func newTLSListener(tb testing.TB, c *tls.Config) *tlsListener {
	tb.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(tb, err)
	l := &tlsListener{Listener: plain, current: c, seen: map[int64]int{}}
	tb.Cleanup(func() { _ = plain.Close() })
	return l
}

// postgres encrypts what goes to a PostgreSQL at the address. Its protocol begins
// in plain text, with a request for encryption.
func (l *tlsListener) postgres(address string) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := io.CopyN(io.Discard, conn, 8); err != nil {
				return
			}
			if _, err := conn.Write([]byte("S")); err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer server.Close()
			client := tls.Server(conn, l.config())
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

// A certificate that is renewed, with a new authority on both sides, is used by
// the next connection to the brokers and to the database: what is running goes on
// without a restart (case H10). A server that only trusts the new authority shows
// that no connection began with the old files.
func TestRenewedCertificates(t *testing.T) {
	const before, after, serverSerial, producer = 1001, 1002, 5, 9
	old, renewed := newAuthority(t, "old"), newAuthority(t, "renewed")
	brokers := newTLSListener(t, old.config(serverSerial))
	kafka := processortest.Kafka(t, processortest.WithTopic(1, "t"), processortest.With(
		kfake.ListenFn(func(string, string) (net.Listener, error) { return brokers, nil }), kfake.TLS(brokers.config())))
	db := tablestest.New(t)
	db.Exec("create table effect (id text not null)")
	dbURL, err := url.Parse(db.URL)
	noErr(t, err)
	database := newTLSListener(t, old.config(serverSerial))
	go database.postgres(dbURL.Host)

	w := &caseWorld{tb: t, kafka: kafka, db: db, dir: t.TempDir()}
	write := func(a *authority, serial int64) {
		cert, key := a.issue(serial)
		for name, text := range map[string][]byte{"ca.pem": a.pem, "cert.pem": cert, "key.pem": key} {
			noErr(t, os.WriteFile(w.file(name), text, 0o600))
		}
	}
	write(old, before)
	dbURL.Host = database.Addr().String()
	query := dbURL.Query()
	for name, value := range map[string]string{"sslmode": "verify-full", "sslrootcert": w.file("ca.pem"), "sslcert": w.file("cert.pem"), "sslkey": w.file("key.pem")} {
		query.Set(name, value)
	}
	dbURL.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	w.env = map[string]string{"DATABASE_URL": dbURL.String(), "ONCESTREAM_SCHEMA": db.Schema, "KAFKA_BROKERS": kafka.Addrs()[0], "DIR": w.dir}
	noErr(t, os.WriteFile(w.file("pipeline.yaml"), []byte(`name: g
kafka:
  brokers: [k]
  topic: t
  start: earliest
  tls: {ca: "${DIR}/ca.pem", cert: "${DIR}/cert.pem", key: "${DIR}/key.pem"}
postgres: {url: "${DATABASE_URL}"}
key: {field: id}
sinks: [{insert: {table: effect}}]
`), 0o600))
	send := func(a *authority, id string) {
		p, err := processor.OpenPublisher(processor.Kafka{Brokers: kafka.Addrs(), Topic: "t", TLS: a.config(producer)})
		noErr(t, err)
		defer p.Close()
		noErr(t, p.Publish(t.Context(), []schema.Record{{Value: []byte(`{"id":"` + id + `"}`)}}))
	}

	r := w.background()
	send(old, "a")
	w.waitFor("select count(*) from effect", "1")
	if brokers.count(before) == 0 || database.count(before) == 0 || brokers.count(after)+database.count(after) > 0 {
		t.Errorf("before the renewal the clients are %v and %v", brokers.seen, database.seen)
	}
	write(renewed, after)
	brokers.renew(renewed.config(serverSerial))
	database.renew(renewed.config(serverSerial))
	send(renewed, "b")
	w.waitFor("select count(*) from effect", "2")
	eventually(t, func() (bool, string) {
		return brokers.count(after) > 0 && database.count(after) > 0, "nobody has come with the new certificate"
	})
	r.finish()
	if log := r.stderr.String(); bytes.Contains([]byte(log), []byte("halted")) {
		t.Errorf("it halted:\n%s", log)
	}
}
