#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's own verbs tools see the ports as they would see a ConnectX-5's.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
need ibv_devices ibv_devinfo

softcx --ports 3 -- ibv_devices >"$tmp/devices" 2>"$tmp/errors" || fail 'ibv_devices'
[ "$(grep -c '^ *mlx5_[012] .*0202c9fffe00000[123]$' "$tmp/devices")" -eq 3 ] ||
	{ cat "$tmp/devices"; fail 'three ports were asked for'; }

softcx --rate 25G -- ibv_devinfo -v >"$tmp/info" 2>"$tmp/errors" || fail 'ibv_devinfo'
while read -r line; do
	grep -qF "$line" "$tmp/info" || { cat "$tmp/info"; fail "no '$line'"; }
done <<-'END'
	fw_ver:				16.35.1012
	vendor_part_id:			4119
	phys_port_cnt:			1
	link_layer:		Ethernet
	state:			PORT_ACTIVE (4)
	active_width:		1X (1)
	active_speed:		25.0 Gbps (32)
	GID[  0]:		fe80::2:c9ff:fe00:1, RoCE v2
	SUPPORT_RAW_PACKET
	C-VLAN stripping offload
END

# The first device with a given name, as most programs choose it.
softcx --ports 2 -- ibv_devinfo -d mlx5_1 >"$tmp/info" 2>&1 || fail 'ibv_devinfo -d mlx5_1'
grep -q 'node_guid:.*0202:c9ff:fe00:0002' "$tmp/info" || fail 'mlx5_1 is another'
if softcx -- ibv_devinfo -d mlx5_1 >"$tmp/info" 2>&1; then
	fail 'there is a mlx5_1 among one'
fi
