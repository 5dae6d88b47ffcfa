package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Options say where the schema registry is and how it is asked.
type Options struct {
	// URL is the registry's address, with its scheme: "https://registry:8081".
	// Several are joined by commas; the next one is asked where one cannot be
	// reached. It holds no user and no password. Needed.
	URL string
	// User and Password are sent as HTTP basic authentication. Default to none.
	User, Password string
	// Token is sent as a bearer token, in place of User and Password. Defaults
	// to none.
	Token string
	// TLS is the configuration for https. Defaults to Go's own.
	TLS *tls.Config
	// Timeout is how long one request may take. Defaults to 5 seconds.
	Timeout time.Duration
	// UnknownFor is how long the registry's answer that it does not know an id
	// is kept before it is asked again; so is a schema that cannot be used.
	// Defaults to 1 minute.
	UnknownFor time.Duration
}

const (
	defaultTimeout    = 5 * time.Second
	defaultUnknownFor = time.Minute
)

// urls checks the options and returns the addresses in them.
func (o *Options) urls() ([]string, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("registry: "+format, args...)) }
	urls := strings.Split(o.URL, ",")
	for i, u := range urls {
		urls[i] = strings.TrimSpace(u)
		if err := checkURL(urls[i]); err != nil {
			fault("URL: %w", err)
		}
	}
	if o.Token != "" && o.User != "" {
		fault("Token and User are both given; one of them authenticates")
	}
	if o.Password != "" && o.User == "" {
		fault("Password is given without User")
	}
	if o.Timeout < 0 || o.UnknownFor < 0 {
		fault("Timeout and UnknownFor must not be negative (got %v and %v)", o.Timeout, o.UnknownFor)
	}
	return urls, errors.Join(faults...)
}

// checkURL never repeats an address that has a password in it.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it cannot be read as an address")
	case u.User != nil:
		return errors.New("the address holds a user; give User and Password, which no error prints")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("an address such as https://registry:8081 is needed (got %q)", text)
	}
	return nil
}

// client returns the HTTP client and the registry client over it.
func (o *Options) client(urls []string) (*http.Client, *sr.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.TLS != nil {
		transport.TLSClientConfig = o.TLS.Clone()
	}
	web := &http.Client{Transport: transport, Timeout: o.Timeout}
	opts := []sr.ClientOpt{sr.URLs(urls...), sr.HTTPClient(web), sr.UserAgent("oncestream")}
	if o.User != "" {
		opts = append(opts, sr.BasicAuth(o.User, o.Password))
	}
	if o.Token != "" {
		opts = append(opts, sr.BearerToken(o.Token))
	}
	client, err := sr.NewClient(opts...)
	return web, client, err
}
