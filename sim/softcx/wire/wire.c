/* SPDX-License-Identifier: BSD-3-Clause */
/* Cables: which port is at the other end of which. */

#include <errno.h>

#include "wire.h"

static int
connect(struct softcx_card *card, unsigned int from, unsigned int to)
{
	struct cx_link *link = cx_link_create(&card->config, card->hz);

	if (link == NULL)
		return -ENOMEM;
	card->port[from]->out = link;
	card->port[to]->in = link;
	return 0;
}

int
cx_wire_init(struct softcx_card *card)
{
	int err = 0;

	for (unsigned int i = 0; i < card->config.ports && err == 0; i++) {
		switch (card->config.wire) {
		case SOFTCX_WIRE_GEN:
			err = cx_check_init(card->port[i]);
			if (err == 0)
				err = cx_gen_init(card->port[i]);
			break;
		case SOFTCX_WIRE_LOOP:
			err = connect(card, i, i);
			break;
		case SOFTCX_WIRE_PAIR:
			err = connect(card, i, i ^ 1);
			break;
		case SOFTCX_WIRE_SINK:
			break;
		}
	}
	return err;
}

void
cx_wire_fini(struct softcx_card *card)
{
	for (unsigned int i = 0; i < card->config.ports; i++) {
		if (card->port[i] == NULL)
			continue;
		cx_gen_fini(card->port[i]);
		cx_check_fini(card->port[i]);
		cx_link_destroy(card->port[i]->out);
		card->port[i]->out = NULL;
		card->port[i]->in = NULL;
	}
}
