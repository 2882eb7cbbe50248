/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "command.h"

#define PRIORITY_MAX   15 /* of the kernel's 16 for rules that bypass it */
#define SPECS_MAX      10
#define SPEC_SIZE_MAX  (sizeof(struct ib_uverbs_flow_spec_hdr) + 2 * 40) /* an IPv6 one */
#define TAG_MAX        0xffffff
#define FLAGS_RESERVED (1 << 3)

/* The parts of a filter that begin with the known ones; the rest must be zero. */
static int
copy_filter(const struct ib_uverbs_flow_spec_hdr *spec, void *value, void *mask, size_t size)
{
	const uint8_t *given = (const uint8_t *)(spec + 1);
	size_t half, known, i;

	if (spec->size <= sizeof(*spec))
		return -EINVAL;
	half = (spec->size - sizeof(*spec)) / 2;
	if (half == 0 || half % 4 != 0)
		return -EINVAL;
	known = half < size ? half : size;
	memset(value, 0, size);
	memset(mask, 0, size);
	memcpy(value, given, known);
	memcpy(mask, given + half, known);
	for (i = known; i < half; i++) {
		if (given[half + i] != 0)
			return -EINVAL;
	}
	return 0;
}

/* Each of these fills the value of a match, or its mask, from that half of a filter. */

static void
fill_eth(struct softcx_match *match, const struct ib_uverbs_flow_eth_filter *filter)
{
	memcpy(match->dst_mac, filter->dst_mac, sizeof(match->dst_mac));
	memcpy(match->src_mac, filter->src_mac, sizeof(match->src_mac));
	match->ether_type = filter->ether_type;
	match->vlan_tci = filter->vlan_tag;
}

static void
fill_ipv4(struct softcx_match *match, const struct ib_uverbs_flow_ipv4_filter *filter)
{
	match->src_ipv4 = filter->src_ip;
	match->dst_ipv4 = filter->dst_ip;
	match->proto = filter->proto;
	match->tos = filter->tos;
	match->ttl = filter->ttl;
}

static void
fill_ipv6(struct softcx_match *match, const struct ib_uverbs_flow_ipv6_filter *filter)
{
	memcpy(match->src_ipv6, filter->src_ip, sizeof(match->src_ipv6));
	memcpy(match->dst_ipv6, filter->dst_ip, sizeof(match->dst_ipv6));
	match->flow_label = filter->flow_label;
	match->proto = filter->next_hdr;
	match->tos = filter->traffic_class;
	match->ttl = filter->hop_limit;
}

static void
fill_ports(struct softcx_match *match, const struct ib_uverbs_flow_tcp_udp_filter *filter)
{
	match->src_port = filter->src_port;
	match->dst_port = filter->dst_port;
}

static int
add_headers(const struct ib_uverbs_flow_spec_hdr *spec, struct softcx_flow_attr *attr)
{
	union {
		struct ib_uverbs_flow_eth_filter eth;
		struct ib_uverbs_flow_ipv4_filter ipv4;
		struct ib_uverbs_flow_ipv6_filter ipv6;
		struct ib_uverbs_flow_tcp_udp_filter ports;
	} value, mask;
	size_t size = spec->type == IBV_FLOW_SPEC_ETH    ? sizeof(value.eth)
		      : spec->type == IBV_FLOW_SPEC_IPV4 ? sizeof(value.ipv4)
		      : spec->type == IBV_FLOW_SPEC_IPV6 ? sizeof(value.ipv6)
							 : sizeof(value.ports);
	int error = copy_filter(spec, &value, &mask, size);

	if (error < 0)
		return error;
	switch (spec->type) {
	case IBV_FLOW_SPEC_ETH:
		fill_eth(&attr->value, &value.eth);
		fill_eth(&attr->mask, &mask.eth);
		return 0;
	case IBV_FLOW_SPEC_IPV4:
		if (mask.ipv4.flags != 0)
			return -EOPNOTSUPP;
		attr->headers |= SOFTCX_MATCH_IPV4;
		fill_ipv4(&attr->value, &value.ipv4);
		fill_ipv4(&attr->mask, &mask.ipv4);
		return 0;
	case IBV_FLOW_SPEC_IPV6:
		if (be32toh(value.ipv6.flow_label) >> 20 || be32toh(mask.ipv6.flow_label) >> 20)
			return -EINVAL;
		attr->headers |= SOFTCX_MATCH_IPV6;
		fill_ipv6(&attr->value, &value.ipv6);
		fill_ipv6(&attr->mask, &mask.ipv6);
		return 0;
	default:
		attr->headers |=
			spec->type == IBV_FLOW_SPEC_TCP ? SOFTCX_MATCH_TCP : SOFTCX_MATCH_UDP;
		fill_ports(&attr->value, &value.ports);
		fill_ports(&attr->mask, &mask.ports);
		return 0;
	}
}

static int
add_spec(const struct ib_uverbs_flow_spec_hdr *spec, struct softcx_flow_attr *attr)
{
	const struct ib_uverbs_flow_spec_action_tag *tag = (const void *)spec;

	if (spec->reserved)
		return -EINVAL;
	switch (spec->type) {
	case IBV_FLOW_SPEC_ETH:
	case IBV_FLOW_SPEC_IPV4:
	case IBV_FLOW_SPEC_IPV6:
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		return add_headers(spec, attr);
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (spec->size != sizeof(*tag) || tag->tag_id > TAG_MAX)
			return -EINVAL;
		attr->tag = tag->tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		if (spec->size != sizeof(struct ib_uverbs_flow_spec_action_drop))
			return -EINVAL;
		attr->drop = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_HANDLE: /* of objects that cannot be made here */
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return -EINVAL;
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
	case IBV_FLOW_SPEC_ESP:
	case IBV_FLOW_SPEC_GRE:
	case IBV_FLOW_SPEC_MPLS:
		return -EOPNOTSUPP;
	default:
		return spec->type & IBV_FLOW_SPEC_INNER ? -EOPNOTSUPP : -EINVAL;
	}
}

/* A type of frame that contradicts the headers asked for. */
static bool
contradicts(const struct softcx_flow_attr *attr)
{
	unsigned int ip = attr->headers & (SOFTCX_MATCH_IPV4 | SOFTCX_MATCH_IPV6);

	if (ip == (SOFTCX_MATCH_IPV4 | SOFTCX_MATCH_IPV6))
		return true;
	if (ip == 0 || attr->mask.ether_type != 0xffff)
		return false;
	return be16toh(attr->value.ether_type) != (ip == SOFTCX_MATCH_IPV4 ? 0x0800 : 0x86dd);
}

static int
check_flow(const struct ib_uverbs_create_flow *request)
{
	const struct ib_uverbs_flow_attr *flow = &request->flow_attr;

	if (request->comp_mask || flow->flags >= FLAGS_RESERVED)
		return -EINVAL;
	if (flow->num_of_specs > SPECS_MAX || flow->size > flow->num_of_specs * SPEC_SIZE_MAX ||
		flow->reserved[0] || flow->reserved[1])
		return -EINVAL;
	if (flow->port != 1 || flow->priority > PRIORITY_MAX || flow->type > IBV_FLOW_ATTR_SNIFFER)
		return -EINVAL;
	/* Neither rules for what is sent, nor those that let a packet go on. */
	return flow->flags != 0 ? -EOPNOTSUPP : 0;
}

static int
add_specs(const struct command *command, const struct ib_uverbs_flow_attr *flow,
	struct softcx_flow_attr *attr)
{
	const uint8_t *at = (const uint8_t *)command->in + sizeof(struct ib_uverbs_create_flow);
	size_t left = flow->size;
	unsigned int i;
	int error;

	if (command->in_length - sizeof(struct ib_uverbs_create_flow) < left)
		return -ENOSPC;
	for (i = 0; i < flow->num_of_specs; i++) {
		const struct ib_uverbs_flow_spec_hdr *spec = (const void *)at;

		if (left < sizeof(*spec) || left < spec->size || spec->size < sizeof(*spec))
			return -EINVAL;
		error = add_spec(spec, attr);
		if (error < 0)
			return error;
		at += spec->size;
		left -= spec->size;
	}
	if (left != 0 || contradicts(attr))
		return -EINVAL;
	return 0;
}

int
cmd_ex_create_flow(struct uverbs_context *context, const struct command *command)
{
	const struct ib_uverbs_create_flow *request = command->in;
	struct ib_uverbs_create_flow_resp response = {.comp_mask = 0};
	struct softcx_flow_attr attr = {.drop = false};
	struct flow_object *flow;
	struct qp_object *qp;
	int error = check_flow(request);

	if (error < 0)
		return error;
	qp = FIND(context, OBJECT_QP, struct qp_object, request->qp_handle);
	if (qp == NULL)
		return -EINVAL;
	attr.type = request->flow_attr.type;
	attr.priority = request->flow_attr.priority;
	error = add_specs(command, &request->flow_attr, &attr);
	if (error < 0)
		return error;
	attr.qpn = attr.drop ? 0 : qp->base.number;
	flow = context_new_object(context, OBJECT_FLOW, sizeof(*flow));
	if (flow == NULL)
		return -ENOMEM;
	error = softcx_flow_create(context->port, &attr, &flow->base.number);
	if (error < 0) {
		context_free_object(context, &flow->base);
		return error;
	}
	flow->qp = qp;
	qp->base.uses++;
	response.flow_handle = flow->base.handle;
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
destroy_flow(struct uverbs_context *context, struct flow_object *flow)
{
	int error = softcx_flow_destroy(context->port, flow->base.number);

	if (error < 0)
		return error;
	flow->qp->base.uses--;
	context_free_object(context, &flow->base);
	return 0;
}

int
cmd_ex_destroy_flow(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_destroy_flow request;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.comp_mask)
		return -EINVAL;
	return context_destroy(context, OBJECT_FLOW, request.flow_handle);
}
