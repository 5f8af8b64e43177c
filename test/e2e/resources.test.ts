import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp } from '../helpers/clients.ts';
import { setUp } from '../helpers/set-up.ts';
import {
  fixtureServer,
  type RunningSwitchboard,
  referenceServer,
  startSwitchboard,
} from '../helpers/switchboard.ts';

const SERVER = 'dev.switchboard/server';

describe('the resources of several servers', () => {
  let switchboard: RunningSwitchboard;
  let connected: ConnectedClient;
  let client: ConnectedClient['client'];

  setUp(async (use) => {
    switchboard = use(
      await startSwitchboard({
        work: fixtureServer('notes', { NOTES_OF: 'work' }),
        home: fixtureServer('notes', { NOTES_OF: 'home' }),
        everything: referenceServer('everything'),
      }),
    );
    connected = use(await connectHttp(switchboard.url));
    client = connected.client;
  });

  const textAt = async (uri: string) => {
    const { contents } = await client.readResource({ uri });
    return contents.map((content) => ({
      uri: content.uri,
      text: 'text' in content ? content.text : undefined,
    }));
  };
  const failureOf = (uri: string) => client.readResource({ uri }).catch((error: unknown) => error);

  it('form one list, and each URI contains the server and its own URI [A6, A7, G10]', async () => {
    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    expect(uris).toEqual(
      expect.arrayContaining([
        'resource://work/note://todo',
        'resource://work/note://only/work',
        'resource://home/note://todo',
        'resource://home/note://only/home',
        'resource://everything/demo://resource/static/document/features.md',
      ]),
    );
    expect(new Set(uris).size).toBe(uris.length);
    for (const { uri, _meta } of resources)
      expect(uri).toMatch(new RegExp(`^resource://${_meta?.[SERVER]}/`));
  });

  it('are read from the server that the URI names [A6, G10]', async () => {
    for (const server of ['work', 'home']) {
      const uri = `resource://${server}/note://todo`;
      expect(await textAt(uri)).toEqual([{ uri, text: `note://todo of ${server}` }]);
    }
    const document = await textAt('resource://everything/demo://resource/static/document/features.md');
    expect(document[0]?.text).toContain('# Everything Server');
  });

  it('have templates in one list, and are read through them [A7, G10]', async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
    expect(templates).toEqual(
      expect.arrayContaining([
        'resource://work/note://day/work/{day}',
        'resource://home/note://day/home/{day}',
        'resource://everything/demo://resource/dynamic/text/{resourceId}',
      ]),
    );
    const uri = templates.find((template) => template.includes('/home/'))!.replace('{day}', 'monday');
    expect(await textAt(uri)).toEqual([{ uri, text: 'note://day/home/monday of home' }]);
  });

  it('are found by a URI that only one server has, as another server refers to them [G11]', async () => {
    expect(await textAt('note://only/home')).toEqual([
      { uri: 'resource://home/note://only/home', text: 'note://only/home of home' },
    ]);
    expect(await textAt('note://day/work/friday')).toMatchObject([
      { text: 'note://day/work/friday of work' },
    ]);
    expect(await textAt('demo://resource/dynamic/text/5')).toMatchObject([
      { text: expect.stringContaining('Resource 5') },
    ]);
  });

  it('are not guessed if two servers have the same URI [G11]', async () => {
    const failure = await failureOf('note://todo');
    expect(failure).toBeInstanceOf(McpError);
    expect(failure).toMatchObject({ data: { code: 'unknown_resource', uri: 'note://todo' } });
  });

  it('that do not exist return the error of their server, or of Switchboard [G11]', async () => {
    expect(await failureOf('resource://home/note://nothing')).toMatchObject({
      code: -32002,
      message: expect.stringContaining('no such note: note://nothing'),
    });
    expect(await failureOf('note://nothing')).toMatchObject({ data: { code: 'unknown_resource' } });
    expect(await failureOf('resource://nobody/note://todo')).toMatchObject({
      data: { code: 'unknown_resource' },
    });
  });

  it('have the same URIs in results, and only in URI fields [A6]', async () => {
    const { content } = await client.callTool({ name: 'work__refer', arguments: { uri: 'note://done' } });
    expect(content).toEqual([
      { type: 'resource_link', uri: 'resource://work/note://done', name: 'a link' },
      {
        type: 'resource',
        resource: {
          uri: 'resource://work/note://done',
          mimeType: 'text/plain',
          text: 'note://done of work',
        },
      },
      { type: 'text', text: 'not a reference: note://done' },
    ]);
  });

  it('have the URI of their owner in results of other servers, if there is one [G11]', async () => {
    const linkTo = async (uri: string) => {
      const { content } = await client.callTool({ name: 'work__refer', arguments: { uri } });
      return (content as [{ uri: string }])[0].uri;
    };
    const link = await linkTo('note://only/home');
    expect(link).toBe('resource://home/note://only/home');
    expect(await textAt(link)).toEqual([{ uri: link, text: 'note://only/home of home' }]);
    // A URI of the server itself, and one without an owner.
    expect(await linkTo('note://todo')).toBe('resource://work/note://todo');
    expect(await linkTo('note://nothing')).toBe('resource://work/note://nothing');
  });

  it('form one list with prompts, and each prompt comes from its server [A7]', async () => {
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name, _meta }) => [name, _meta?.[SERVER]])).toEqual(
      expect.arrayContaining([
        ['work__summarize', 'work'],
        ['home__summarize', 'home'],
        ['simple-prompt', 'everything'],
      ]),
    );
    const { messages } = await client.getPrompt({ name: 'home__summarize' });
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Notes of home' } }]);
    await expect(client.getPrompt({ name: 'no-such-prompt' })).rejects.toThrow(
      'Unknown prompt: no-such-prompt',
    );
  });

  it('complete arguments at the server of the prompt or template, under its own names [A7]', async () => {
    const ofPrompt = await client.complete({
      ref: { type: 'ref/prompt', name: 'home__summarize' },
      argument: { name: 'any', value: '' },
    });
    expect(ofPrompt.completion.values).toEqual(['home {"type":"ref/prompt","name":"summarize"}']);
    const ofTemplate = await client.complete({
      ref: { type: 'ref/resource', uri: 'resource://work/note://day/work/{day}' },
      argument: { name: 'day', value: 'm' },
    });
    expect(ofTemplate.completion.values).toEqual([
      'work {"type":"ref/resource","uri":"note://day/work/{day}"}',
    ]);
  });
});
