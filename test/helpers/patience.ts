/** The time limit for expected events, long enough for a busy machine; TEST_PATIENCE=3 triples it. */
export const patienceMs = 240_000 * Number(process.env.TEST_PATIENCE ?? 1);
