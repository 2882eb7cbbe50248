/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cases a run has. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

bool
bench_wants(const struct bench *bench, const struct subject *subject)
{
	const struct options *options = bench->options;
	char list[512], *word, *rest = list;

	if ((subject->tests & bench->test->bit) == 0)
		return false;
	if (strcmp(subject->name, "pagepool") == 0 &&
		((options->pcp != NULL &&
			 !options_has_word(options->pcp, pcp_mode_name(subject->mode))) ||
			!options_has_word(options->checks, pcp_checks_name(subject->checks))))
		return false;
	if (options->subjects == NULL)
		return !subject->on_demand;
	snprintf(list, sizeof(list), "%s", options->subjects);
	while ((word = strsep(&rest, ",")) != NULL)
		if (subject_matches(subject, word))
			return true;
	return false;
}

static bool
is_bulk(const struct call *call)
{
	return call->api != NULL && strcmp(call->api, "bulk") == 0;
}

/* The order whose blocks hold `size` bytes. */
static uint32_t
order_of_size(uint32_t size)
{
	uint32_t order = 0;

	while (((size_t)PP_PAGE_SIZE << order) < size)
		order++;
	return order;
}

/* What a call makes of a request; false where it has nothing for it. */
static bool
fit(const struct bench *bench, const struct subject *subject, const struct call *call,
	struct request *request)
{
	const bool by_size = bench->test->bit == TEST_KMALLOC;
	const bool operation = call->api == NULL;

	if (by_size && (request->size < subject->min_size ||
			       (subject->max_size != 0 && request->size > subject->max_size)))
		return false;
	if (by_size && subject->min_size == PP_PAGE_SIZE)
		request->order = order_of_size(request->size);
	if (request->order > subject->max_order || (request->lcores > 1 && subject->one_lcore))
		return false;
	if ((request->order == 0 ? call->loops : call->loops_order) == NULL)
		return false;
	/* However it was got, it is touched in the same way. */
	if (bench->test->bit == TEST_TOUCH && call != subject->calls)
		return false;
	/* Bulk is for several; time measures one at a time; sizes come one by one. */
	if (is_bulk(call) && (request->n == 1 || by_size || bench->test->bit == TEST_TIME))
		return false;
	if (bench->test->bit == TEST_TIME && operation)
		request->n = 1000;
	request->burst = is_bulk(call) ? RTE_MIN(bench->options->burst, request->n) : 1;
	return true;
}

static void
name_rows(struct bench_case *one)
{
	static const char *const ops[][2] = {
		[KERNEL_PAIR] = {"pair", NULL},
		[KERNEL_SPLIT] = {"alloc", "free"},
		[KERNEL_LATENCY] = {"alloc", "free"},
		[KERNEL_PIPELINE] = {"pair", NULL},
		[KERNEL_TOUCH] = {"touch", NULL},
	};

	one->row[0].op = ops[one->request.kernel][0];
	one->row[1].op = ops[one->request.kernel][1];
	one->n_rows = one->row[1].op != NULL ? 2 : 1;
}

/* The index of a new case, or -ENOMEM. */
static int
append(struct bench *bench, const struct request *request)
{
	if (bench->n_cases == bench->room) {
		const uint32_t room = bench->room == 0 ? 256 : 2 * bench->room;
		struct bench_case *grown = realloc(bench->cases, room * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		bench->cases = grown;
		bench->room = room;
	}
	struct bench_case *one = &bench->cases[bench->n_cases];

	*one = (struct bench_case){
		.request = *request,
		.subject = &subjects[request->subject],
		.call = &subjects[request->subject].calls[request->call],
		.base = -1,
	};
	name_rows(one);
	for (uint32_t i = 0; i < one->n_rows && request->kernel == KERNEL_LATENCY; i++) {
		one->row[i].histogram = calloc(1, sizeof(*one->row[i].histogram));
		if (one->row[i].histogram == NULL)
			return -ENOMEM;
	}
	bench->seats[request->subject].used = true;
	return bench->n_cases++;
}

static bool
is_base(uint32_t subject)
{
	return subject == subject_find("empty") || subject == subject_find("for_loop");
}

/* The empty loop that the request's own loop costs as much as: -1: none, or -ENOMEM. */
static int
find_base(struct bench *bench, const struct request *request)
{
	const struct call *call = &subjects[request->subject].calls[request->call];
	struct request base = *request;

	if (request->kernel == KERNEL_PIPELINE || request->kernel == KERNEL_TOUCH)
		return -1;
	base.subject = subject_find(call->api == NULL ? "for_loop" : "empty");
	base.call = is_bulk(call) ? 1 : 0;
	base.order = 0;
	base.size = 0;
	base.fresh = 0;
	base.warm_up = bench->options->warm_up;
	for (uint32_t i = 0; i < bench->n_cases; i++)
		if (memcmp(&bench->cases[i].request, &base, sizeof(base)) == 0)
			return i;
	return append(bench, &base);
}

static int
add_case(struct bench *bench, const struct request *request)
{
	const struct options *options = bench->options;
	const uint64_t bytes = (uint64_t)request->n * request->size * request->lcores;
	int base = -1, index;

	if (bytes > (uint64_t)options->memory << 20) {
		index = append(bench, request);
		if (index >= 0)
			bench->cases[index].dropped = "its objects take more than --memory";
		return RTE_MIN(index, 0);
	}
	if (!is_base(request->subject))
		base = find_base(bench, request);
	index = base < -1 ? base : append(bench, request);
	if (index < 0)
		return index;
	bench->cases[index].base = base;
	bench->need.lcores = RTE_MAX(bench->need.lcores, request->lcores);
	bench->need.objects = RTE_MAX(bench->need.objects, request->n);
	bench->need.pages =
		RTE_MAX(bench->need.pages, (request->n << request->order) * request->lcores);
	return 0;
}

int
bench_add(struct bench *bench, const struct request *requests, uint32_t n)
{
	int err = 0;

	for (uint32_t s = 0; s < n_subjects && err == 0; s++) {
		if (!bench_wants(bench, &subjects[s]))
			continue;
		for (uint32_t c = 0; c < subjects[s].n_calls; c++) {
			for (uint32_t i = 0; i < n && err == 0; i++) {
				struct request request = requests[i];

				request.subject = s;
				request.call = c;
				request.warm_up = request.fresh ? 0 : bench->options->warm_up;
				if (fit(bench, &subjects[s], &subjects[s].calls[c], &request))
					err = add_case(bench, &request);
			}
		}
	}
	if (err != 0)
		cli_error("no memory for %u cases; ask for fewer", bench->n_cases);
	return err;
}
