package main

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// openLog makes the logger that the flags and the environment ask for.
func (a *app) openLog() error {
	format := a.setting(a.logFormat, "ONCESTREAM_LOG_FORMAT", "text")
	text := a.setting(a.logLevel, "ONCESTREAM_LOG_LEVEL", "info")
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return usagef("--log-level: must be debug, info, warn or error (got %q)", text)
	}
	options := &slog.HandlerOptions{Level: level}
	switch {
	case format != "text" && format != "json":
		return usagef("--log-format: must be text or json (got %q)", format)
	case format == "json":
		a.log = slog.New(slog.NewJSONHandler(a.stderr, options))
	case a.onTerminal:
		a.log = slog.New(tint.NewTextHandler(a.stderr, &tint.Options{Level: level, TimeFormat: time.TimeOnly}))
	default:
		a.log = slog.New(slog.NewTextHandler(a.stderr, options))
	}
	return nil
}

// setting returns the flag, else the variable of the environment, else the
// default.
func (a *app) setting(flag, variable, def string) string {
	if flag != "" {
		return flag
	}
	if v, _ := a.env(variable); v != "" {
		return v
	}
	return def
}
