import { describe, expect, test } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { complaints, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { runConformance } from './run.ts';

interface Crossing {
  server: 'legacy' | 'modern';
  revision: string;
  /** Scenarios that need tools or a transport of the revision's own era. */
  isMissing: RegExp;
  passed: number;
}

const crossings: Crossing[] = [
  {
    server: 'legacy',
    revision: '2026-07-28',
    isMissing: /^(tasks-|input-required-result-|http-custom-header-server-validation|server-stateless)/,
    passed: 67,
  },
  {
    server: 'modern',
    revision: '2025-11-25',
    isMissing:
      /^(elicitation-sep|tools-call-(elicitation|sampling|with-logging)|server-sse-polling|server-sse-multiple)/,
    passed: 60,
  },
];

describe.each(crossings)('clients that conform to $revision, on a $server server', (crossing) => {
  const { server, revision, isMissing, passed } = crossing;

  const check = async (config: object) => {
    await using switchboard = await startSwitchboard({ conformance: config });
    const checks = await runConformance(switchboard.url, revision);
    const asked = checks.filter(({ scenario }) => !isMissing.test(scenario));
    expect(complaints(asked)).toEqual([]);
    expect(passedChecks(asked).length).toBeGreaterThanOrEqual(passed);
  };

  test('find no violation over streamable HTTP', async () => {
    await using fixture = await startFixture(server);
    await check({ url: fixture.url });
  });

  test('find no violation over stdio', async () => {
    await check({ command: process.execPath, args: [fixturePaths[server]] });
  });
});
