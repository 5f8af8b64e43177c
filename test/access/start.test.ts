import { describe, expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';

const warning = (text: string) => (event: { event: string; message?: unknown }) =>
  event.event === 'warning' && String(event.message).includes(text);

describe('authentication in the configuration', () => {
  it('that is turned on in the file of a running Switchboard does not look as if it had effect', async () => {
    await using switchboard = await startSwitchboard({}, {}, { database: 'shared' });
    await switchboard.configure({}, { publicUrl: 'https://sb.example' });
    const { message } = await switchboard.event(warning('at the next start'));
    expect(message).toContain('until then no key is asked for');
    expect(message).toContain('auth, publicUrl');
    await switchboard.configure({}, { auth: true, localAccess: 'everyone' });
    await switchboard.event(warning('The next start will fail'));
  });

  it('needs https with a certificate, and a database', async () => {
    const tls = { cert: 'cert.pem', key: 'key.pem' };
    const start = (settings: object, database: 'shared' | 'none') =>
      startSwitchboard({}, settings, { database }).then(
        (started) => started.stop(),
        (error: Error) => error.message,
      );
    expect(await start({ publicUrl: 'http://sb.example', tls }, 'shared')).toContain(
      'must begin with https://',
    );
    expect(await start({ auth: true }, 'none')).toContain('needs a database');
    expect(await start({ auth: true, localAccess: 'everyone' }, 'shared')).toContain('contradicts');
    expect(await start({ publicUrl: 'https://sb.example/path' }, 'shared')).toContain('without a path');
    expect(await start({ trustedProxies: ['10.0.0.0/99'] }, 'shared')).toContain('an address or a range');
  });
});
