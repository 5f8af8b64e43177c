import type { Contents, Peer } from './peer.ts';

interface SdkClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  readResource(params: { uri: string }): Promise<{ contents: Contents[] }>;
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<{
    messages: { content: object }[];
  }>;
  complete(params: {
    ref: { type: 'ref/prompt'; name: string };
    argument: { name: string; value: string };
  }): Promise<{ completion: { values: string[] } }>;
}

type CommonRequests = Pick<
  Peer,
  'toolNames' | 'resourceUris' | 'templateUris' | 'promptNames' | 'readResource' | 'getPrompt' | 'complete'
>;

export function requestsOf(client: SdkClient): CommonRequests {
  return {
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    resourceUris: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    templateUris: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    promptNames: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    readResource: async (uri) => (await client.readResource({ uri })).contents,
    async getPrompt(name, given = {}) {
      const { messages } = await client.getPrompt({ name, arguments: given });
      return (messages[0]!.content as { text: string }).text;
    },
    async complete(prompt, argument) {
      const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument });
      return completion.values;
    },
  };
}
