/* plant.h - deliberate bugs, with which tests/tools/plants_check.sh verifies that the simulator's invariant checks find
 * each bug.
 *
 * `if (PLANTED(NAME))` marks a place for a bug. The condition is false and costs nothing, except in builds with
 * -Dplant=true, which exist only for that test. There the environment variable BERTH_PLANT selects one bug by name.
 *
 * To add a bug: add a row here, and PLANTED(NAME) at one place.
 */
#pragma once

#include <stdbool.h>

#define PLANTS(X)                                                                                                      \
    X(NODE_FORGETS_ENDS, "after a restart the agent knows nothing of what was over")                                   \
    X(NODE_ADOPTS_NOTHING, "after a restart the agent knows nothing of what runs")                                     \
    X(NODE_FORGETS_EARLY, "the agent forgets what is over although it is listed")                                      \
    X(NODE_NEVER_FORGETS, "the agent keeps the folders of what is over for ever")                                      \
    X(NODE_HEARS_ITSELF, "the agent takes silence for an answer, so that no fence is ever due")                        \
    X(NODE_STARTS_STOPPED, "the agent starts what is listed to stop")                                                  \
    X(NODE_OLD_CONFIG, "the agent does what an older configuration says")                                              \
    X(NODE_STAYS, "the agent goes on although another one speaks for its node")                                        \
    X(NODE_STOPPED_AT_ONCE, "the agent says that something has stopped when it has told it to")                        \
    X(NODE_KEEPS_UNLISTED, "the agent lets run what is not listed any more")                                           \
    X(NODE_STOPS_IN_SILENCE, "the agent stops everything when the daemon does not answer")                             \
    X(NODE_SAYS_ONCE, "the agent does not repeat what was in a report that was not taken")                             \
    X(NODE_KEEPS_END, "the agent does not tell that something is over")                                                \
    X(REPORT_STALE, "reports that come late or twice are taken")                                                       \
    X(REPORT_FOREIGN, "a node may speak of another node's instances")                                                  \
    X(REPORT_EPOCH, "the epoch of an agent is not written down")                                                       \
    X(REPORT_KEEPS_FAILED, "an instance that has failed is kept")                                                      \
    X(LEASE_SHORT, "a lease is over at half its time")                                                                 \
    X(LEASE_NOT_GRANTED, "a daemon that starts grants nobody a lease")                                                 \
    X(CLOCK_JUMPS, "the daemon follows the wall clock wherever it jumps")                                              \
    X(CONFIG_NO_FENCE, "a node is not told of fences")                                                                 \
    X(CONFIG_RESERVED, "a node is told of what is only reserved")                                                      \
    X(COMMIT_UNGUARDED, "a transaction rests on nothing")                                                              \
    X(COMMIT_HALF, "the last change of a transaction is left out")                                                     \
    X(COMMIT_UNTOLD, "the journal is not told of the last change of a transaction")                                    \
    X(STORE_LIES, "a write that failed is acknowledged")                                                               \
    X(STORE_GUARDS, "the store does not look at guards")                                                               \
    X(IDS_AGAIN, "a daemon that starts gives out numbers again")                                                       \
    X(KEY_FORGOTTEN, "a request with a key that was used is carried out again")                                        \
    X(KEY_ANYTHING, "a key stands for any request")                                                                    \
    X(TRANSITION_ANY, "every state may follow every other")                                                            \
    X(MOMENT_UNTOLD, "the journal tells of another moment than was decided at")                                        \
    X(FENCE_IGNORED, "a plan gives away at once what is on a lost node")                                               \
    X(ALARM_IGNORED, "a plan replaces what is lost although half of the nodes are")                                    \
    X(PROMOTE_EARLY, "a reserved place is taken before those it waits for have gone")                                  \
    X(PORTS_SHARED, "a plan does not look at ports that are held")                                                     \
    X(COUNT_FORGOTTEN, "what an instance that goes has held is not given back")                                        \
    X(DRY_RUN_WRITES, "a dry run is carried out")                                                                      \
    X(USAGE_UNTOLD, "an instance ends and nobody writes down what it used")                                            \
    X(QUOTA_ONE_MORE, "one pod more is placed than a quota allows")                                                    \
    X(QUOTA_STOPPING, "what is stopping counts against no quota")                                                      \
    X(QUOTA_MOVED, "what has moved counts against no quota")                                                           \
    X(OVER_PLACED, "a job that has just ended gets a new task")                                                        \
    X(GANG_PART, "a part of a gang is placed when not all of it finds a place")                                        \
    X(VICTIM_OF_EQUALS, "jobs are stopped for others of the same tier")                                                \
    X(AFTER_EARLY, "a job waits for no other")                                                                         \
    X(REQUEUE_FORGETS, "a job that is queued again does not know of it")                                               \
    X(JOB_NEVER_OVER, "a job whose tasks are done is not over")                                                        \
    X(TABLE_SCORE, "scores are upside down: found by the tables of a trace")

#ifdef BERTH_PLANT
enum plant {
    PLANT_NONE,
#define X(name, text) PLANT_##name,
    PLANTS(X)
#undef X
};
bool plant_is(enum plant plant);
#define PLANTED(name) plant_is(PLANT_##name)
#else
#define PLANTED(name) false
#endif
