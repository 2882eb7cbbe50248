/* SPDX-License-Identifier: BSD-3-Clause */
/* Steering: flows, in the order of their matching, and the CQE's words that follow from it. */

#include <errno.h>
#include <stdlib.h>

#include "steer.h"

#define MAX_TAG 0xffffffu

/* l4_hdr_type_etc of a CQE */
#define L4_VLAN_STRIPPED 0x01u
#define L4_L3_SHIFT      2
#define L4_TYPE_SHIFT    4
#define L4_FRAGMENT      0x80u

enum { L4_TYPE_NONE, L4_TYPE_TCP, L4_TYPE_UDP, L4_TYPE_TCP_EMPTY_ACK, L4_TYPE_TCP_ACK };

/* ---- matching ---- */

static bool
bytes_match(const uint8_t *data, const uint8_t *value, const uint8_t *mask, unsigned int n)
{
	unsigned int differ = 0;

	for (unsigned int i = 0; i < n; i++)
		differ |= (unsigned int)(data[i] ^ value[i]) & mask[i];
	return differ == 0;
}

static bool
field_matches(uint32_t data, uint32_t value, uint32_t mask)
{
	return ((data ^ value) & mask) == 0;
}

static bool
l3_matches(const struct cx_packet *packet, const struct softcx_flow_attr *flow)
{
	const struct softcx_match *value = &flow->value, *mask = &flow->mask;
	const uint8_t *ip = packet->data + packet->l3;

	if ((flow->headers & SOFTCX_MATCH_IPV4) != 0) {
		if (!packet->is_ipv4 ||
			!bytes_match(ip + 12, (const uint8_t *)&value->src_ipv4,
				(const uint8_t *)&mask->src_ipv4, 4) ||
			!bytes_match(ip + 16, (const uint8_t *)&value->dst_ipv4,
				(const uint8_t *)&mask->dst_ipv4, 4))
			return false;
	} else if ((flow->headers & SOFTCX_MATCH_IPV6) != 0) {
		if (!packet->is_ipv6 || !bytes_match(ip + 8, value->src_ipv6, mask->src_ipv6, 16) ||
			!bytes_match(ip + 24, value->dst_ipv6, mask->dst_ipv6, 16) ||
			!field_matches(packet->flow_label, be32toh(value->flow_label),
				be32toh(mask->flow_label)))
			return false;
	} else {
		return true;
	}
	return field_matches(packet->proto, value->proto, mask->proto) &&
	       field_matches(packet->tos, value->tos, mask->tos) &&
	       field_matches(packet->ttl, value->ttl, mask->ttl);
}

static bool
matches(const struct cx_packet *packet, const struct softcx_flow_attr *flow)
{
	const struct softcx_match *value = &flow->value, *mask = &flow->mask;

	if (packet->have < CX_ETH_LEN)
		return false;
	if (!bytes_match(packet->data, value->dst_mac, mask->dst_mac, 6) ||
		!bytes_match(packet->data + 6, value->src_mac, mask->src_mac, 6) ||
		!field_matches(
			packet->ether_type, be16toh(value->ether_type), be16toh(mask->ether_type)))
		return false;
	if (mask->vlan_tci != 0 &&
		(!packet->has_vlan || !field_matches(packet->vlan_tci, be16toh(value->vlan_tci),
					      be16toh(mask->vlan_tci))))
		return false;
	if (!l3_matches(packet, flow))
		return false;
	if (((flow->headers & SOFTCX_MATCH_TCP) != 0 && !packet->is_tcp) ||
		((flow->headers & SOFTCX_MATCH_UDP) != 0 && !packet->is_udp))
		return false;
	if ((flow->headers & (SOFTCX_MATCH_TCP | SOFTCX_MATCH_UDP)) == 0)
		return true;
	const uint8_t *l4 = packet->data + packet->l4;

	return bytes_match(l4, (const uint8_t *)&value->src_port, (const uint8_t *)&mask->src_port,
		       2) &&
	       bytes_match(l4 + 2, (const uint8_t *)&value->dst_port,
		       (const uint8_t *)&mask->dst_port, 2);
}

/* Whether two flows are one rule with two destinations, which the hardware serves both. */
static bool
same_rule(const struct softcx_flow_attr *a, const struct softcx_flow_attr *b)
{
	return a->type == b->type && a->priority == b->priority && a->headers == b->headers &&
	       memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0 &&
	       memcmp(&a->value, &b->value, sizeof(a->value)) == 0;
}

/* ---- what the CQE says ---- */

static uint8_t
l4_type(const struct cx_packet *packet)
{
	if (packet->is_udp)
		return L4_TYPE_UDP;
	if (!packet->is_tcp)
		return L4_TYPE_NONE;
	if (!packet->tcp_ack)
		return L4_TYPE_TCP;
	return packet->tcp_empty ? L4_TYPE_TCP_EMPTY_ACK : L4_TYPE_TCP_ACK;
}

static void
lead(const struct cx_flow *flow, const struct cx_packet *packet, struct cx_steered *to)
{
	const struct cx_qp *qp = flow->qp;
	uint32_t hash = 0;
	uint8_t hash_type = 0;

	if (qp->is_rss) {
		cx_rss_hash(packet, qp->rss.fields, qp->rss.key, &hash, &hash_type);
		to->wq = qp->rss.table->wq[hash & (qp->rss.table->count - 1)];
	} else {
		to->wq = qp->rq;
	}
	const bool strip = to->wq->vlan_strip && packet->has_vlan;
	const unsigned int l3 = packet->is_ipv4   ? MLX5_CQE_L3_HDR_TYPE_IPV4
				: packet->is_ipv6 ? MLX5_CQE_L3_HDR_TYPE_IPV6
						  : MLX5_CQE_L3_HDR_TYPE_NONE;
	const uint8_t hds = (uint8_t)(MLX5_CQE_L2_OK | (packet->l3_ok ? MLX5_CQE_L3_OK : 0) |
				      (packet->l4_ok ? MLX5_CQE_L4_OK : 0));
	const uint8_t l4 =
		(uint8_t)(l3 << L4_L3_SHIFT | l4_type(packet) << L4_TYPE_SHIFT |
			  (packet->fragment ? L4_FRAGMENT : 0) | (strip ? L4_VLAN_STRIPPED : 0));
	uint16_t sum = 0;

	/* of all behind the Ethernet header, where the card has seen all of it */
	if (packet->have == packet->len && packet->len > packet->l3)
		sum = cx_csum_fold(
			cx_csum_add(0, packet->data + packet->l3, packet->len - packet->l3));
	to->word[0] = (uint64_t)htobe32(hash) << 32;
	to->word[1] = hash_type | (uint64_t)sum << 32;
	to->word[2] = (uint64_t)hds << 32 | (uint64_t)l4 << 40 |
		      (uint64_t)htobe16(packet->vlan_tci) << 48;
	to->tag_be = htobe32(flow->attr.tag);
}

enum cx_fate
cx_steer(const struct softcx_port *port, const struct cx_packet *packet, struct cx_steered *to,
	struct cx_steered *copies, unsigned int max, unsigned int *n_copies)
{
	const struct cx_flow *first = NULL;

	*n_copies = 0;
	for (const struct cx_flow *flow = port->flow_list; flow != NULL; flow = flow->next) {
		const bool sniffer = flow->attr.type == IBV_FLOW_ATTR_SNIFFER;

		if (!sniffer && first != NULL && !same_rule(&first->attr, &flow->attr))
			continue;
		if (flow->attr.type == IBV_FLOW_ATTR_MC_DEFAULT && (packet->data[0] & 1) == 0)
			continue;
		if (!matches(packet, &flow->attr))
			continue;
		if (!sniffer && first == NULL) {
			first = flow;
			if (flow->qp != NULL)
				lead(flow, packet, to);
		} else if (flow->qp != NULL && *n_copies < max) {
			lead(flow, packet, &copies[(*n_copies)++]);
		}
	}
	if (first == NULL)
		return CX_FATE_NO_FLOW;
	return first->qp != NULL ? CX_FATE_QUEUE : CX_FATE_DROP;
}

/* ---- their lives ---- */

/* Normal rules first, then the defaults; sniffers see everything and their place does not matter.
 */
static bool
goes_before(const struct softcx_flow_attr *a, const struct softcx_flow_attr *b)
{
	static const uint8_t rank[] = {
		[IBV_FLOW_ATTR_NORMAL] = 0,
		[IBV_FLOW_ATTR_MC_DEFAULT] = 1,
		[IBV_FLOW_ATTR_ALL_DEFAULT] = 2,
		[IBV_FLOW_ATTR_SNIFFER] = 3,
	};

	if (rank[a->type] != rank[b->type])
		return rank[a->type] < rank[b->type];
	return a->priority < b->priority;
}

static void
link_flow(struct softcx_port *port, struct cx_flow *flow)
{
	struct cx_flow **at = &port->flow_list;

	while (*at != NULL && !goes_before(&flow->attr, &(*at)->attr))
		at = &(*at)->next;
	flow->next = *at;
	*at = flow;
	port->steering++;
}

int
softcx_flow_create(struct softcx_port *port, const struct softcx_flow_attr *attr, uint32_t *number)
{
	if ((unsigned int)attr->type > IBV_FLOW_ATTR_SNIFFER ||
		attr->priority > SOFTCX_MAX_PRIORITY || attr->tag > MAX_TAG)
		return -EINVAL;

	struct cx_flow *flow = calloc(1, sizeof(*flow));
	int err = 0;

	if (flow == NULL)
		return -ENOMEM;
	flow->attr = *attr;
	cx_port_hold(port);
	if (!attr->drop) {
		flow->qp = cx_table_find(&port->qps, attr->qpn);
		if (flow->qp == NULL || (!flow->qp->is_rss && flow->qp->rq == NULL))
			err = -EINVAL;
	}
	if (err == 0)
		err = cx_table_add(&port->flows, &flow->object);
	if (err == 0) {
		if (flow->qp != NULL)
			flow->qp->object.refs++;
		link_flow(port, flow);
		*number = flow->object.number;
	}
	cx_port_release(port);
	if (err != 0)
		free(flow);
	return err;
}

int
softcx_flow_destroy(struct softcx_port *port, uint32_t number)
{
	cx_port_hold(port);
	struct cx_flow *flow = cx_table_find(&port->flows, number);

	if (flow != NULL) {
		struct cx_flow **at = &port->flow_list;

		while (*at != flow)
			at = &(*at)->next;
		*at = flow->next;
		port->steering++;
		if (flow->qp != NULL)
			flow->qp->object.refs--;
		cx_table_remove(&port->flows, &flow->object);
	}
	cx_port_release(port);
	free(flow);
	return flow != NULL ? 0 : -EINVAL;
}
