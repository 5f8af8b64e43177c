import { describe, expect, it } from 'vitest';
import { banner, type Listening } from './banner.ts';

const local: Listening = { url: 'http://127.0.0.1:7400', auth: false, config: '/srv/mcp.json' };
const addition = 'claude mcp add --transport http switchboard';

describe('what `up` prints', () => {
  it('has the endpoint and how to plug in a client', () => {
    const text = banner(local);
    expect(text).toContain('  endpoint   http://127.0.0.1:7400/mcp\n  config     /srv/mcp.json');
    expect(text).toContain('{"type":"http","url":"http://127.0.0.1:7400/mcp"}');
    expect(text).toContain(`${addition} http://127.0.0.1:7400/mcp\n`);
    expect(text).not.toContain('key');
  });

  it('has the header and how to make a key, if requests need one', () => {
    const text = banner({ ...local, auth: true });
    expect(text).toContain('    switchboard key add my-client --project default --role caller\n');
    expect(text).toContain('"url":"http://127.0.0.1:7400/mcp","headers":{"Authorization":"Bearer <key>"}');
    expect(text).toContain(`${addition} http://127.0.0.1:7400/mcp --header "Authorization: Bearer <key>"\n`);
  });

  it('has the public address for clients, and the own one for commands', () => {
    const text = banner({
      ...local,
      auth: true,
      url: 'https://0.0.0.0:443',
      publicUrl: 'https://sb.example',
    });
    expect(text).toContain('  endpoint   https://sb.example/mcp\n  listens    https://0.0.0.0:443\n');
    expect(text).toContain('--role caller --url https://127.0.0.1:443\n');
    expect(text).toContain(`${addition} https://sb.example/mcp --header`);
  });
});
