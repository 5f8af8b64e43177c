import type { GroupView, KeyView } from '../../api/access-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { apiPath, callApi } from '../api.ts';
import { withKey } from '../key/reference.ts';
import type { ApiFlags } from '../options.ts';
import { counted, oneLine, printList, printResult, summary } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';
import { onlyKey } from '../subject.ts';

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
  await withKey(flags.url, onlyKey(member, 'switchboard group join'), (key) =>
    callApi(flags.url, 'PUT', apiPath('groups', name, 'members', key)),
  );
  printResult({ group: name, joined: member }, `${member} is in the group ${name}`, flags);
}

export async function leaveGroup(name: string, member: string, flags: ApiFlags): Promise<void> {
  const { groups } = await callApi<{ groups: GroupView[] }>(flags.url, 'GET', '/groups');
  const group = groups.find(({ id }) => id === name) ?? groups.find((each) => each.name === name);
  if (group === undefined) throw notFound(`There is no group ${JSON.stringify(name)}.`);
  const id = await memberOf(group, onlyKey(member, 'switchboard group leave'), flags);
  if (id === undefined) throw notFound(`${member} was not in the group ${group.name}.`);
  await callApi(flags.url, 'DELETE', apiPath('groups', group.id, 'members', id));
  printResult({ group: name, left: member }, `${member} is no longer in the group ${name}`, flags);
}

/** The API finds keys that share their name, or are named otherwise. */
async function memberOf(
  { members }: GroupView,
  given: string,
  { url }: ApiFlags,
): Promise<string | undefined> {
  const named = members.filter(({ id, name }) => id === given || name === given);
  if (named.length === 1) return named[0]?.id;
  const { id } = await withKey(url, given, (key) => callApi<KeyView>(url, 'GET', apiPath('keys', key)));
  return members.find((member) => member.id === id)?.id;
}

function notFound(message: string): SwitchboardError {
  return new SwitchboardError('not_found', message);
}

function groupRow({ name, members, description }: GroupView): string[] {
  const names = members.map((member) => member.name).join(', ');
  const list = members.length === 0 ? 'no members' : `${counted(members.length, 'member')}: ${names}`;
  return [name, list, oneLine(summary(description))];
}
