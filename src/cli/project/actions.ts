import type { ProjectView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { endpointOf } from '../defaults.ts';
import { exitCodes, usageError } from '../exit.ts';
import {
  complain,
  counted,
  listTable,
  localTime,
  oneLine,
  print,
  printJson,
  summary,
  table,
} from '../output.ts';
import { isConfirmed } from '../prompt.ts';

interface Flags {
  url: string;
  json?: boolean;
}

export interface ProjectFlags extends Flags {
  name?: string;
  description?: string;
  recordPayloads?: boolean;
  retentionDays?: number | 'never';
  names?: ProjectView['names'];
}

export async function listProjects({ url, json }: Flags): Promise<void> {
  const { projects } = await callApi<{ projects: ProjectView[] }>(url, 'GET', '/projects');
  if (json) printJson(projects);
  else print(listTable(projects.map(projectRow)));
}

export async function showProject(project: string, { url, json }: Flags): Promise<void> {
  const view = await callApi<ProjectView>(url, 'GET', projectPath(project));
  if (json) printJson(view);
  else print(projectText(view));
}

export async function addProject(name: string, flags: ProjectFlags): Promise<void> {
  const body = { ...changesOf(flags), name };
  const view = await callApi<ProjectView>(flags.url, 'POST', '/projects', { body });
  if (flags.json) printJson(view);
  else
    print(
      [
        `added project ${view.name}, which clients reach at ${endpointOf({ url: flags.url, project: view.name })}`,
        `${endpointOf({ url: flags.url })} has the servers of all projects`,
      ].join('\n'),
    );
}

export async function changeProject(project: string, flags: ProjectFlags): Promise<void> {
  const body = changesOf(flags);
  if (Object.keys(body).length === 0) {
    throw usageError(
      'Nothing to change: use --name, --description, --record-payloads, --retention-days or --names.',
    );
  }
  const view = await callApi<ProjectView>(flags.url, 'PATCH', projectPath(project), { body });
  if (flags.json) printJson(view);
  else print(projectText(view));
}

export async function removeProject(project: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const view = await callApi<ProjectView>(flags.url, 'GET', projectPath(project));
  const contents = `its ${counted(view.server_count, 'server')}, its secrets and its records`;
  if (!(await isConfirmed(`Remove the project ${view.name} with ${contents}?`, flags, 'needs-yes'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', projectPath(view.id), { version: view.version });
  if (flags.json) printJson({ removed: view.name });
  else print(`removed project ${view.name}`);
  return exitCodes.ok;
}

function changesOf({ name, description, recordPayloads, retentionDays, names }: ProjectFlags): object {
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description: description === '' ? null : description }),
    ...(recordPayloads === undefined ? {} : { record_payloads: recordPayloads }),
    ...(retentionDays === undefined
      ? {}
      : { retention_days: retentionDays === 'never' ? null : retentionDays }),
    ...(names === undefined ? {} : { names }),
  };
}

function projectRow({ name, server_count, description }: ProjectView): string[] {
  return [name, counted(server_count, 'server'), oneLine(summary(description))];
}

function projectText(view: ProjectView): string {
  return table([
    ['name', view.name],
    ['id', view.id],
    ...(view.description === null ? [] : [['description', oneLine(view.description)]]),
    ['servers', String(view.server_count)],
    ['records', `${view.record_payloads ? 'with' : 'without'} arguments and results`],
    ['kept for', view.retention_days === null ? 'ever' : counted(view.retention_days, 'day')],
    ['tool names', view.names],
    ['created', localTime(view.created_at)],
  ]);
}
