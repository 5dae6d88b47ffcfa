package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tlsFiles are the files of an encrypted connection, in PEM form.
type tlsFiles struct{ ca, cert, key, serverName string }

// read reads the files; at is where they are named.
func (f *tlsFiles) read(r *reader, at string) *tls.Config {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if err := f.trust(t); err != nil {
		r.failAt(at+".ca", "%v", err)
	}
	if err := f.identify(t); err != nil {
		r.failAt(at+".cert", "%v", err)
	}
	return t
}

// renew reads the files again, for a new connection: certificates expire, and
// what renews them only replaces the files.
func (f *tlsFiles) renew() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if err := errors.Join(f.trust(t), f.identify(t)); err != nil {
		return nil, fmt.Errorf("read the certificates again: %w", err)
	}
	return t, nil
}

// trust has t trust the authorities of the file, if there is one.
func (f *tlsFiles) trust(t *tls.Config) error {
	if f.ca == "" {
		return nil
	}
	text, err := os.ReadFile(f.ca)
	if err != nil {
		return err
	}
	t.RootCAs = x509.NewCertPool()
	if !t.RootCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("there is no certificate in %s", f.ca)
	}
	return nil
}

// identify has t show the certificate of the files, if there is one.
func (f *tlsFiles) identify(t *tls.Config) error {
	if f.cert == "" && f.key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("cert and key go together: %w", err)
	}
	t.Certificates = []tls.Certificate{pair}
	return nil
}
