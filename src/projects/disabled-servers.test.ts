import { expect, it } from 'vitest';
import type { ServerConfig } from '../config.ts';
import type { Server } from '../upstreams/server.ts';
import { DisabledServers } from './disabled-servers.ts';
import type { ListedServer } from './listed-server.ts';

const offer = { tools: [{ name: 'echo' }], resources: [], templates: [], prompts: [{ name: 'greet' }] };

function listed(parts: Partial<ListedServer> = {}, isEnabledInFile = true): ListedServer {
  const config = { name: 'box', enabled: isEnabledInFile } as ServerConfig;
  return { name: 'box', config, row: undefined, isEnabled: false, ...parts };
}

it('remembers the offer of a disabled server, from its last run or from storage', () => {
  const stopped = [{ name: 'box', offer } as unknown as Server];
  const ran = new DisabledServers(() => undefined);
  ran.update([listed()], stopped);
  ran.update([listed()], []);
  const recalled = new DisabledServers(() => ({ offer, instructions: undefined, extensions: undefined }));
  recalled.update([listed()], []);
  for (const servers of [ran, recalled]) {
    expect([...servers.all(undefined)]).toMatchObject([
      { name: 'box', prefix: 'box', offered: new Set(['echo', 'greet']) },
    ]);
    servers.update([listed({ isEnabled: true })], []);
    expect([...servers.all(undefined)]).toEqual([]);
  }
});

it.each([
  ['of a project', listed(), ' disabled; enable it with: switchboard server enable box -P team'],
  [
    'that is hosted',
    listed({ hosted: {} as never }),
    ' stopped; start it with: switchboard start box -P team',
  ],
  ['that the file disables', listed({}, false), ' disabled in the configuration file'],
])('a server %s comes with advice', (_, server, advice) => {
  const servers = new DisabledServers(() => undefined);
  servers.update([server], []);
  const [{ why } = { why: '' }] = servers.all('team');
  expect(why).toBe(`its server "box" is${advice}`);
});
