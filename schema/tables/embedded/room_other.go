//go:build !linux

package embedded

import "errors"

var errLinux = errors.New("needs Linux")

func mountRoom(account, string, int64) error { return errLinux }

func resizeRoom(string, int64) error { return errLinux }

func fillRoom(string) error { return errLinux }

func unmountRoom(string) error { return errLinux }
