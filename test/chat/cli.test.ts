import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { ChatView, RunList } from '../../src/api/chat-views.ts';
import { converse } from '../../src/cli/chat/actions.ts';
import { calls, says } from '../agent/messages-api.ts';
import { runCli, startCli } from '../helpers/cli.ts';
import { Inbox } from '../helpers/inbox.ts';
import { mainProgram } from '../helpers/programs.ts';
import { setUp } from '../helpers/set-up.ts';
import { ChatSite, type Talk } from './scene.ts';

let scene: ChatSite;

setUp(async (use) => {
  scene = use(await ChatSite.start());
});

const echo = { name: 'echo', input: { text: 'hello' } };

function wordsFor({ project, model }: Talk, ...words: string[]): string[] {
  return ['chat', project.name, ...words, '--model', model, '--url', scene.site.baseUrl];
}

/** A user at a terminal, with all output so far. */
function openTerminal({ project, model }: Talk) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const flags = { url: scene.site.baseUrl, model };
  const over = converse(`/projects/${project.name}/chat`, flags, { stdin, stdout, stderr });
  return { over, stdin, said: readingOf(stdout), noted: readingOf(stderr) };
}

function readingOf(stream: PassThrough): Inbox<string> {
  const read = new Inbox<string>();
  stream.on('data', (chunk) => read.add(`${read.items.at(-1) ?? ''}${chunk}`));
  return read;
}

describe('switchboard chat', () => {
  it('answers one question with the tools of the project', async () => {
    const talk = await scene.project([calls(echo), says('It said hello.')]);
    const { code, stdout, stderr } = await runCli(wordsFor(talk, 'Say', 'hello!', '--tool', 'ec*'));
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It said hello.\n' });
    expect(stderr).toMatch(/^→ echo \(box\) \{"text":"hello"\}\n← echo: \d+ ms, hello\n$/);
    expect(talk.requests[0]!.body.tools).toHaveLength(1);
  });

  it('answers piped input, and prints the result as JSON', async () => {
    const talk = await scene.project([says('Short.')]);
    const child = spawn(process.execPath, [mainProgram, ...wordsFor(talk, '--json')], { stdio: 'pipe' });
    child.stdin.end('A long\ntext.\n');
    const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect([code, JSON.parse(stdout) as ChatView]).toMatchObject([0, { text: 'Short.', steps: 1 }]);
    expect(talk.requests[0]!.body.messages).toMatchObject([{ content: [{ text: 'A long\ntext.' }] }]);
  });

  it('says how to set a missing key', async () => {
    const talk = await scene.project([]);
    await talk.project.done('DELETE /secrets/ANTHROPIC_API_KEY');
    const { code, stdout, stderr } = await runCli(wordsFor(talk, 'Hello?'));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('switchboard secret set ANTHROPIC_API_KEY --project');
  });

  it('cancels the run on SIGINT', async () => {
    const talk = await scene.project(() => calls({ name: 'wait' }));
    await using cli = startCli(wordsFor(talk, 'Wait!'));
    await scene.site.witness.sees(talk.project.who('box'), 'waiting');
    cli.process.kill('SIGINT');
    await cli.finished;
    const { runs } = await talk.project.done<RunList>('GET /runs');
    expect(await talk.over(runs[0]!.id)).toMatchObject({ status: 'cancelled' });
  });

  it('keeps the finished steps when an answer fails', async () => {
    const refusal = { status: 400, error: { type: 'invalid_request_error', message: 'Not now.' } };
    const talk = await scene.project([calls(echo), refusal, says('Two.')]);
    const { over, stdin, said, noted } = openTerminal(talk);
    stdin.write('First?\r');
    await noted.first((all) => all.includes('Not now.'));
    stdin.write('Second?\r');
    await said.first((all) => all.includes('Two.\n'));
    stdin.end();
    await over;
    const { messages } = talk.requests[2]!.body;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user']);
  });

  it('runs on a terminal until it is closed; Ctrl-C ends only the answer', async () => {
    const talk = await scene.project([
      says('One.'),
      calls({ name: 'wait' }),
      { status: 400, error: { type: 'invalid_request_error', message: 'Not now.' } },
      says('Two.'),
    ]);
    const { over, stdin, said, noted } = openTerminal(talk);
    stdin.write('First?\r');
    await said.first((all) => all.includes('One.\n'));
    stdin.write('\rWait!\r');
    await scene.site.witness.sees(talk.project.who('box'), 'waiting');
    stdin.write('\x03');
    await noted.first((all) => all.includes('error: The response was cancelled.'));
    stdin.write('Fail!\r');
    await noted.first((all) => all.includes('Not now.'));
    stdin.write('Second?\r');
    await said.first((all) => all.includes('Two.\n'));
    stdin.end();
    await over;
    // Failed answers are not part of the conversation.
    const texts = talk.requests[3]!.body.messages.map(
      ({ content }) => (content as { text: string }[])[0]!.text,
    );
    expect(texts).toEqual(['First?', 'One.', 'Second?']);

    const again = openTerminal(talk);
    await again.noted.first((all) => all.includes('> '));
    again.stdin.write('\x03');
    await again.over;
    expect(talk.requests).toHaveLength(4);
  });
});
