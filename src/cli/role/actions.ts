import type { GrantView, KeyView, RoleTable } from '../../api/access-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { apiPath, callApi } from '../api.ts';
import type { ApiFlags } from '../options.ts';
import { print, printJson, printList, printResult, table } from '../output.ts';
import { holder, orGroup } from '../subject.ts';

interface PlaceFlags extends ApiFlags {
  project?: string;
}

export async function listGrants(flags: PlaceFlags): Promise<void> {
  printList('roles', await grantsIn(flags), grantRow, flags);
}

export async function grantRole(role: string, to: string, flags: PlaceFlags): Promise<void> {
  const body = { ...holder(to), role, project: flags.project };
  const grant = await orGroup(to, () => callApi<GrantView>(flags.url, 'PUT', '/grants', { body }));
  printResult(grant, `${to} has the role ${grant.role} ${placeText(grant)}`, flags);
}

export async function revokeRole(role: string, from: string, flags: PlaceFlags): Promise<void> {
  const grants = await grantsIn(flags);
  const fitting = grants.filter((grant) => grant.role === role && isIn(grant, flags.project));
  const grant = await grantOf(fitting, from, flags);
  if (grant === undefined) {
    const where = flags.project === undefined ? 'in all projects' : `in the project ${flags.project}`;
    throw new SwitchboardError(
      'not_found',
      `${from} was not given the role ${role} ${where}. What was given is shown by: switchboard role ls`,
    );
  }
  await callApi(flags.url, 'DELETE', apiPath('grants', grant.id));
  printResult({ revoked: grant.id }, `${from} no longer has the role ${role} ${placeText(grant)}`, flags);
}

export async function showTable(flags: ApiFlags): Promise<void> {
  const answer = await callApi<RoleTable>(flags.url, 'GET', '/roles');
  if (flags.json) printJson(answer);
  else print(tableText(answer));
}

export function tableText({ roles, actions }: RoleTable): string {
  const rows = actions.map(({ action, meaning }) => [
    action,
    ...roles.map((each) => (each.actions.includes(action) ? 'yes' : '–')),
    `may ${meaning}`,
  ]);
  return table([['', ...roles.map(({ role }) => role), ''], ...rows]);
}

async function grantsIn({ url, project }: PlaceFlags): Promise<GrantView[]> {
  const { grants } = await callApi<{ grants: GrantView[] }>(url, 'GET', '/grants', { query: { project } });
  return grants;
}

/** The API finds keys that share their name, or are named as project/name. */
async function grantOf(grants: GrantView[], text: string, { url }: ApiFlags): Promise<GrantView | undefined> {
  const wanted = holder(text);
  const [kind, given] =
    'group' in wanted ? (['group', wanted.group] as const) : (['principal', wanted.principal] as const);
  const named = grants.filter(
    ({ holder: own }) => own.kind === kind && (own.id === given || own.name === given),
  );
  if (named.length === 1 || kind === 'group') return named[0];
  const key = await orGroup(given, () => callApi<KeyView>(url, 'GET', apiPath('keys', given)));
  return grants.find(({ holder: own }) => own.id === key.id);
}

function isIn({ project }: GrantView, place: string | undefined): boolean {
  if (project === null || place === undefined) return project === null && place === undefined;
  return [project.id, project.name].includes(place);
}

function grantRow(grant: GrantView): string[] {
  const { holder, role } = grant;
  return [holder.kind === 'group' ? `group:${holder.name}` : holder.name, role, placeText(grant)];
}

function placeText({ project }: GrantView): string {
  return project === null ? 'in all projects' : `in ${project.name}`;
}
