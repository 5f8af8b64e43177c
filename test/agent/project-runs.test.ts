import { describe, expect, it } from 'vitest';
import { nativeTool } from '../../src/agent.ts';
import type { RunDetails, RunList } from '../../src/api/chat-views.ts';
import { setUp } from '../helpers/set-up.ts';
import { Site, type TestProject } from '../projects/site.ts';
import { calls, says } from './messages-api.ts';
import { openScene } from './scene.ts';

let site: Site;

setUp(async (use) => {
  site = use(await Site.start('server', { mcpServers: {} }));
});

const shout = nativeTool({
  name: 'shout',
  input: { type: 'object' },
  run: ({ text }) => {
    if (text === undefined) throw new Error('Shout what?');
    return String(text).toUpperCase();
  },
});

/** The only run of a project, once this many of its calls are recorded: client calls are recorded in the background. */
async function onlyRun(project: TestProject, calls: number): Promise<RunDetails> {
  for (;;) {
    const { runs } = await project.done<RunList>('GET /runs');
    expect(runs).toHaveLength(1);
    const run = await project.done<RunDetails>(`GET /runs/${runs[0]!.id}`);
    if (run.tool_calls.length >= calls) return run;
  }
}

describe('the chats of an agent in a project', () => {
  it('[P9] are runs of the project with all their tool calls, including native ones', async () => {
    const project = await site.project();
    await project.add('box');
    await project.done('PATCH ', { record_payloads: true });
    const script = [
      calls(
        { name: 'echo', input: { text: 'soup' } },
        { name: 'shout', input: { text: 'soup' }, id: 'b' },
        { name: 'shout', id: 'c' },
        { name: 'nobody_has_it', id: 'd' },
      ),
      says('SOUP.'),
    ];
    await using scene = await openScene(script, () => ({
      ...{ url: project.url, name: 'cook', system: 'You cook.' },
      nativeTools: [shout],
    }));
    await scene.agent.chat('What is it?');
    const run = await onlyRun(project, 4);
    expect(run).toMatchObject({
      ...{ agent: 'cook', model: 'claude-stand-in', system: 'You cook.', input: 'What is it?' },
      ...{ status: 'completed', output: 'SOUP.', stop_reason: 'end', steps: 2, error: null },
      usage: { input_tokens: 20, output_tokens: 10 },
    });
    const recorded = run.tool_calls.map(({ tool, server, client, step, status }) => ({
      ...{ tool, server, client, step, status },
    }));
    const common = { client: 'cook', step: 1 };
    expect(recorded).toHaveLength(4);
    expect(recorded).toEqual(
      expect.arrayContaining([
        { ...common, client: expect.stringMatching(/^cook /), tool: 'echo', server: 'box', status: 'ok' },
        { ...common, tool: 'shout', server: 'native', status: 'ok' },
        { ...common, tool: 'shout', server: 'native', status: 'error' },
        { ...common, tool: 'nobody_has_it', server: null, status: 'error' },
      ]),
    );
    const native = run.tool_calls.find(({ tool, status }) => tool === 'shout' && status === 'ok');
    expect(native).toMatchObject({ input: { text: 'soup' }, output: { content: [{ text: 'SOUP' }] } });
    expect(scene.warnings).toEqual([]);
  });

  it('are recorded as failed or cancelled, without secrets', async () => {
    const project = await site.project();
    await project.done('PUT /secrets/TOKEN', { value: 'a-very-secret-value' });
    const user = new AbortController();
    const stuck = nativeTool({
      name: 'stuck',
      input: { type: 'object' },
      run: () => {
        user.abort(new Error('enough of a-very-secret-value'));
        return new Promise(() => {});
      },
    });
    await using scene = await openScene([calls({ name: 'stuck' })], () => ({
      ...{ url: project.url, nativeTools: [stuck] },
    }));
    await expect(scene.agent.chat('a-very-secret-value?', { signal: user.signal })).rejects.toThrow('enough');
    expect(await onlyRun(project, 0)).toMatchObject({
      ...{ agent: 'switchboard', status: 'cancelled', input: '***?', steps: 1 },
      error: { code: 'cancelled', message: 'enough of ***' },
    });
  });

  it('accept no calls from another project or after their end', async () => {
    const [one, other] = [await site.project(), await site.project()];
    const { id } = await one.done<{ id: string }>('POST /runs', { agent: 'a', model: 'm', input: 'x' });
    const call = {
      id: crypto.randomUUID(),
      step: 1,
      tool: 't',
      server: 'native',
      status: 'ok',
      input: {},
      duration_ms: 1,
    };
    const body = { calls: [call] };
    expect(await other.ask(`POST /runs/${id}/calls`, body)).toMatchObject({ status: 404 });
    expect(await other.ask(`PATCH /runs/${id}`, { status: 'completed' })).toMatchObject({ status: 404 });
    await one.done(`POST /runs/${id}/calls`, body);
    await one.done(`PATCH /runs/${id}`, {});
    expect(await onlyRun(one, 1)).toMatchObject({
      status: 'running',
      tool_calls: [{ input: null, client: 'a' }],
    });
    await one.done(`PATCH /runs/${id}`, { status: 'failed', error: { code: 'x', message: 'y' } });
    expect(await one.ask(`PATCH /runs/${id}`, { status: 'completed' })).toMatchObject({ status: 404 });
    // Gateway calls name their run themselves, so the project is checked there too.
    await other.add('box');
    const session = await other.session();
    const meta = { 'dev.switchboard/run': { id, step: 2 } };
    await session.request('tools/call', { name: 'echo', arguments: { text: 'x' }, _meta: meta });
    await expect
      .poll(async () => (await other.done<{ calls: object[] }>('GET /calls')).calls)
      .toMatchObject([{ tool: 'echo', run_id: null, step: 2 }]);
  });
});
