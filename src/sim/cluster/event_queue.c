/* event_queue.c - a binary heap of events. */
#include "sim/cluster/event_queue.h"

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event t = *a;
    *a = *b;
    *b = t;
}

void event_queue_add(struct event_queue *q, struct sim_event due)
{
    due.order = ++q->order;
    vec_push(&q->heap, due);
    struct sim_event *heap = q->heap.at;
    for (size_t i = q->heap.len - 1; i > 0 && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&heap[i], &heap[(i - 1) / 2]);
}

bool event_queue_pop(struct event_queue *q, struct sim_event *ret)
{
    struct sim_event *heap = q->heap.at;
    if (q->heap.len == 0)
        return false;
    *ret = heap[0];
    heap[0] = heap[--q->heap.len];
    for (size_t i = 0;;) {
        size_t least = i, left = 2 * i + 1, right = left + 1;
        if (left < q->heap.len && before(&heap[left], &heap[least]))
            least = left;
        if (right < q->heap.len && before(&heap[right], &heap[least]))
            least = right;
        if (least == i)
            return true;
        swap(&heap[i], &heap[least]);
        i = least;
    }
}

void event_queue_done(struct event_queue *q)
{
    for (size_t i = 0; i < q->heap.len; i++)
        if (q->heap.at[i].drop)
            q->heap.at[i].drop(q->heap.at[i].arg);
    vec_done(&q->heap);
}
