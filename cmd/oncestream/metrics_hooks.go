package main

import (
	"reflect"

	"github.com/oncestream/oncestream/processor"
)

// joinHooks returns hooks that call those of each, in this order. A hook that
// only one has is that one itself. It goes through the fields by reflection, so
// that a hook which is added later cannot be forgotten here.
func joinHooks(all ...processor.Hooks) processor.Hooks {
	var joined processor.Hooks
	fields := reflect.ValueOf(&joined).Elem()
	for i := range fields.NumField() {
		var set []reflect.Value
		for _, h := range all {
			if f := reflect.ValueOf(h).Field(i); !f.IsNil() {
				set = append(set, f)
			}
		}
		switch len(set) {
		case 0:
		case 1:
			fields.Field(i).Set(set[0])
		default:
			fields.Field(i).Set(reflect.MakeFunc(fields.Type().Field(i).Type, func(args []reflect.Value) []reflect.Value {
				for _, f := range set {
					f.Call(args)
				}
				return nil
			}))
		}
	}
	return joined
}
