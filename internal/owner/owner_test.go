// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestAttributes(t *testing.T) {
	for _, o := range []Owner{{}, {"ml", "chat-0", ""}, {"ml", "chat-0", "main"}} {
		attrs := pcommon.NewMap()
		attrs.PutStr(names.HwID, "GPU-a")
		o.Put(attrs)
		require.Equal(t, o, Of(attrs))
		require.Equal(t, o.IsZero(), attrs.Len() == 1, "what is empty is not written")
		require.Equal(t, o, o.Clone())
	}
	attrs := pcommon.NewMap()
	attrs.PutInt(names.K8sPodName, 7)
	require.Equal(t, Owner{}, Of(attrs), "a name is a string")
}

func TestOwner(t *testing.T) {
	main, sidecar := Owner{"ml", "chat-0", "main"}, Owner{"ml", "chat-0", "sidecar"}
	require.True(t, main.SamePod(sidecar))
	require.False(t, main.SamePod(Owner{"web", "chat-0", "main"}))
	require.Equal(t, main.Whole(), sidecar.Whole())
	require.Equal(t, "ml/chat-0/main", main.String())
	require.Equal(t, "ml/chat-0", main.Whole().String())
	require.Empty(t, Owner{}.String())

	for _, o := range []Owner{{}, main, main.Whole()} {
		require.True(t, o.Valid(), o)
	}
	for _, o := range []Owner{{"", "chat-0", ""}, {"ml", "", ""}, {"ml", "", "main"}, {"", "", "main"}} {
		require.False(t, o.Valid(), o)
	}

	ordered := []Owner{{}, {"a", "z", ""}, {"b", "a", "c"}, {"b", "a", "d"}, {"b", "b", ""}}
	shuffled := []Owner{ordered[3], ordered[4], ordered[0], ordered[2], ordered[1]}
	slices.SortFunc(shuffled, Owner.Compare)
	require.Equal(t, ordered, shuffled)
}
