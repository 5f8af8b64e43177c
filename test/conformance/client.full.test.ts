import { describe, expect, test } from 'vitest';
import type { Era } from '../eras/peer.ts';
import { clientCommand } from './client-program.ts';
import { complaints } from './compare.ts';
import { runClientScenario } from './run.ts';

/** The client scenarios without authorization, each with its number of checks. */
const scenarios: Record<string, Record<string, number>> = {
  '2025-11-25': {
    initialize: 1,
    tools_call: 2,
    'elicitation-sep1034-client-defaults': 5,
    'sse-retry': 3,
    'json-schema-2020-12-preservation': 9,
  },
  '2026-07-28': {
    tools_call: 2,
    'request-metadata': 8,
    'sep-2322-client-request-state': 6,
    'http-standard-headers': 10,
    'http-custom-headers': 18,
    'http-invalid-tool-headers': 12,
    'json-schema-ref-no-deref': 1,
    'json-schema-2020-12-preservation': 9,
  },
};

const eras: Era[] = ['legacy', 'modern'];

describe.each(Object.keys(scenarios))('Switchboard as a client conforms to %s', (revision) => {
  test.each(Object.entries(scenarios[revision]!))(
    'in %s, for clients of both eras',
    async (scenario, count) => {
      const runs = eras.map((era) => runClientScenario(scenario, revision, clientCommand(era)));
      for (const checks of await Promise.all(runs)) {
        expect(complaints(checks)).toEqual([]);
        const passed = checks.filter(({ status }) => status === 'SUCCESS');
        expect(passed.length).toBeGreaterThanOrEqual(count);
      }
    },
  );
});
