import type { RpcMessage } from '../helpers/raw-http.ts';
import { type ModernBehaviour, Refusal, tool } from './modern-peer.ts';
import { RawModern, tasksExtension } from './raw-modern.ts';

/** A server whose tool `work` creates tasks with ids from 1, and names their owner in every response. */
export function taskServer(owner: string, work = 'work'): ModernBehaviour {
  const tasks = new Map<string, { status: string; answers: unknown }>();
  const described = (taskId: string) => ({
    taskId,
    status: tasks.get(taskId)!.status,
    statusMessage: owner,
    createdAt: '2030-01-01T00:00:00Z',
    lastUpdatedAt: '2030-01-01T00:00:00Z',
    ttlMs: null,
  });
  const begin = () => {
    const taskId = String(tasks.size + 1);
    tasks.set(taskId, { status: 'working', answers: undefined });
    return { resultType: 'task', ...described(taskId) };
  };
  const named = ({ taskId }: Record<string, unknown>) => {
    if (!tasks.has(String(taskId))) throw new Refusal(-32602, `${owner} has no task ${String(taskId)}`);
    return String(taskId);
  };
  const details = (taskId: string) => {
    const { status, answers } = tasks.get(taskId)!;
    const content = [
      { type: 'resource_link', uri: `note://${taskId}`, name: 'note' },
      { type: 'resource', resource: { uri: 'note://embedded', text: JSON.stringify(answers) } },
    ];
    const result = { content, structuredContent: { uri: 'note://not-a-link' } };
    return {
      resultType: 'complete',
      ...described(taskId),
      ...(status === 'completed' ? { result } : {}),
    };
  };
  return {
    capabilities: { tools: {}, extensions: { [tasksExtension]: {} } },
    lists: { 'tools/list': () => ({ tools: [tool(work)] }) },
    answer({ method, params = {} }: RpcMessage) {
      switch (method) {
        case 'tools/call':
          return begin();
        case 'tasks/get':
          return details(named(params));
        case 'tasks/update':
          tasks.set(named(params), { status: 'completed', answers: params.inputResponses });
          return { resultType: 'complete' };
        case 'tasks/cancel':
          tasks.set(named(params), { status: 'cancelled', answers: undefined });
          return { resultType: 'complete' };
        default:
          throw new Refusal(-32601, 'Unknown method');
      }
    },
  };
}

export function taskClient(url: string, headers: Record<string, string> = {}): RawModern {
  return new RawModern(url, { capabilities: { extensions: { [tasksExtension]: {} } }, headers });
}

export async function begin(client: RawModern, work: string): Promise<string> {
  const { result, error } = await client.call(work);
  if (result?.resultType !== 'task') throw new Error(`no task: ${JSON.stringify(result ?? error)}`);
  return String(result.taskId);
}
