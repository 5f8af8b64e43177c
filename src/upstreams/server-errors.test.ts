import { expect, it } from 'vitest';
import { statusError } from '../channels/errors.ts';
import { SwitchboardError } from '../errors.ts';
import { ServerLog } from './log.ts';
import { redacted } from './server-errors.ts';

const secret = 'sk-abcdefghijklmnopqrstuvwxyz';
const redact = (text: string) => text.replaceAll(secret, '***');
const url = new URL('http://host/mcp');

it('masks an error without changing anything else', () => {
  const error = new SwitchboardError('server_busy', `not ${secret}`, { data: { status: 1 } });
  expect(redacted(error, redact)).toMatchObject({
    code: 'server_busy',
    message: 'not ***',
    data: { status: 1 },
  });
  const harmless = new SwitchboardError('server_busy', 'harmless');
  expect(redacted(harmless, redact)).toBe(harmless);
});

it('leaves no part of a secret where a response is truncated', () => {
  for (let before = 270; before <= 300; before++) {
    const said = `${'x'.repeat(before)}${secret}${'y'.repeat(10_000)}`;
    const { message, data, code } = redacted(statusError(401, url, said), redact);
    expect(message).not.toContain('sk-');
    expect(message).toMatch(
      /^http:\/\/host\/mcp responded with HTTP 401\. Check .* Response: x{270,300}.{0,30} …$/,
    );
    expect(message.split('Response: ')[1]).toHaveLength(302);
    expect({ code, data }).toEqual({ code: 'server_unavailable', data: { status: 401 } });
  }
});

it('shows a short response unchanged', () => {
  expect(redacted(statusError(500, url, 'out of order'), redact).message).toBe(
    'http://host/mcp responded with HTTP 500. Response: out of order',
  );
  expect(redacted(statusError(500, url, ''), redact).message).toBe(
    'http://host/mcp responded with HTTP 500.',
  );
});

it('truncates log lines after masking', () => {
  const log = new ServerLog(redact);
  log.add(`${'x'.repeat(1_990)}${secret}${'y'.repeat(100)}`);
  expect(log.lines).toEqual([`${'x'.repeat(1_990)}***${'y'.repeat(7)} …`]);
});
