import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import { ChatScreen } from './text.ts';

const call = { name: 'echo', server: 'box', input: { text: 'hello' } };
const done = { run_id: '1', text: 'Done.', stop_reason: 'end', steps: 2, messages: [] };

/** A stream of events; null truncates it. */
const events =
  (...sent: ([string, object] | null)[]) =>
  (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of sent) {
      if (event === null) response.destroy();
      else response.write(`event: ${event[0]}\ndata: ${JSON.stringify(event[1])}\n\n`);
    }
    response.end();
  };

const path = 'POST /projects/research/chat';

describe('switchboard chat', () => {
  it('prints the model’s text and shows its tool calls', async () => {
    const stream = events(
      ['run', { run_id: '1' }],
      ['text', { text: 'Let me ' }],
      ['text', { text: 'see.' }],
      ['tool_start', call],
      ['tool_end', { ...call, is_error: false, text: 'hello\nyou', duration_ms: 12.3 }],
      ['tool_start', { ...call, name: 'gone', server: null, input: {} }],
      ['tool_end', { ...call, name: 'gone', is_error: true, text: 'Unknown tool: gone', duration_ms: 1 }],
      ['text', { text: 'Done.' }],
      ['done', done],
    );
    const { code, stdout, stderr, requests } = await runWith(
      { [path]: stream },
      'chat',
      'research',
      'Say',
      'it!',
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Let me see.\nDone.\n' });
    expect(stderr.split('\n')).toEqual([
      '→ echo (box) {"text":"hello"}',
      '← echo: 12 ms, hello',
      '→ gone {}',
      '✗ gone: failed, Unknown tool: gone',
      '',
    ]);
    expect(requests).toEqual([`${path} {"input":"Say it!","stream":true}`]);
  });

  it('sends the options of the flags, and prints everything with --json', async () => {
    const words = ['--model', 'm', '--system', 's', '--tool', 'a*', '--tool', 'b', '--max-steps', '3'];
    const more = ['--max-tokens', '9', '--api-key-secret', 'KEY', '--json'];
    const { stdout, stderr, requests } = await runWith(
      { [path]: done },
      'chat',
      'research',
      'x',
      ...words,
      ...more,
    );
    expect(JSON.parse(stdout)).toEqual(done);
    expect(stderr).toBe('');
    const body = { model: 'm', system: 's', tools: ['a*', 'b'], max_steps: 3, max_tokens: 9 };
    expect(requests).toEqual([`${path} ${JSON.stringify({ ...body, api_key_secret: 'KEY', input: 'x' })}`]);
  });

  it.each([
    ['step_limit', 'note: stopped after 2 steps (--max-steps)\n'],
    ['length', 'note: the response reached its maximum length (--max-tokens)\n'],
    ['refused', 'note: the model refused to continue\n'],
  ])('reports why the chat ended: %s', async (stop_reason, note) => {
    const { code, stderr } = await runWith(
      { [path]: events(['done', { ...done, stop_reason }]) },
      ...['chat', 'research', 'x'],
    );
    expect([code, stderr]).toEqual([0, note]);
  });

  it('fails with the API’s error, before and during a response', async () => {
    const before = await runWith({}, 'chat', 'research', 'x');
    expect(before).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('error: There is nothing'),
    });
    const error = { code: 'model_refused', message: 'No.', details: {} };
    const middle = events(['text', { text: 'Well' }], ['error', { error }]);
    expect(await runWith({ [path]: middle }, 'chat', 'research', 'x')).toMatchObject({
      ...{ code: 1, stdout: 'Well\n', stderr: 'error: No.\n' },
    });
    for (const cut of [events(['text', { text: 'Well' }]), events(['text', { text: 'Well' }], null)]) {
      const { code, stderr } = await runWith({ [path]: cut }, 'chat', 'research', 'x');
      expect([code, stderr]).toEqual([1, expect.stringMatching(/connection was (lost|closed)/)]);
    }
  });

  it('shows no terminal control sequences', () => {
    const printed: string[] = [];
    const stream = () =>
      new Writable({
        decodeStrings: false,
        write(text, _encoding, done) {
          printed.push(String(text));
          done();
        },
      });
    const stdout = Object.assign(stream(), { isTTY: true });
    const screen = new ChatScreen({ stdout, stderr: stream() });
    screen.text('a\u001b[2Jb\r\tc\u009b');
    screen.toolStart({ name: 'x\u001b[2J', server: null, input: {} });
    expect(printed).toEqual(['a\\u001b[2Jb\\u000d\tc\\u009b', '\n', '→ x\\u001b[2J {}\n']);
  });
});
