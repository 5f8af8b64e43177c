import type { GroupView } from '../../api/access-views.ts';
import { apiPath, callApi } from '../api.ts';
import type { ApiFlags } from '../options.ts';
import { counted, oneLine, printList, printResult, summary } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';

export async function listGroups(flags: ApiFlags): Promise<void> {
  const { groups } = await callApi<{ groups: GroupView[] }>(flags.url, 'GET', '/groups');
  printList('groups', groups, groupRow, flags);
}

export async function addGroup(name: string, flags: ApiFlags & { description?: string }): Promise<void> {
  const body = { name, description: flags.description };
  const group = await callApi<GroupView>(flags.url, 'POST', '/groups', { body });
  printResult(group, `added group ${group.name}`, flags);
}

export function removeGroup(name: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  const question = `Remove the group ${name}? Its members lose the roles that they have through it.`;
  return removeConfirmed(flags, question, apiPath('groups', name), 'group', name);
}

export async function joinGroup(name: string, member: string, flags: ApiFlags): Promise<void> {
  await callApi(flags.url, 'PUT', apiPath('groups', name, 'members', member));
  printResult({ group: name, joined: member }, `${member} is in the group ${name}`, flags);
}

export async function leaveGroup(name: string, member: string, flags: ApiFlags): Promise<void> {
  await callApi(flags.url, 'DELETE', apiPath('groups', name, 'members', member));
  printResult({ group: name, left: member }, `${member} is not in the group ${name}`, flags);
}

function groupRow({ name, members, description }: GroupView): string[] {
  const names = members.map((member) => member.name).join(', ');
  const list = members.length === 0 ? 'no members' : `${counted(members.length, 'member')}: ${names}`;
  return [name, list, oneLine(summary(description))];
}
