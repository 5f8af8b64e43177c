/**
 * How long a test waits for what must happen, and after that gives up: long enough for a machine that is busy with other things.
 * Where even that is too short, TEST_PATIENCE=3 waits three times as long.
 */
export const patienceMs = 240_000 * Number(process.env.TEST_PATIENCE ?? 1);
