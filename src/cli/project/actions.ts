import type { ProjectView } from '../../api/views.ts';
import { callApi, clientUrl, projectPath } from '../api.ts';
import { endpointOf } from '../defaults.ts';
import { exitCodes, usageError } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { counted, localTime, oneLine, printList, printResult, summary, table } from '../output.ts';
import { confirmRemoval } from '../prompt.ts';

export interface ProjectSettings extends ApiFlags {
  name?: string;
  description?: string;
  recordPayloads?: boolean;
  retentionDays?: number | 'never';
  names?: ProjectView['names'];
}

export async function listProjects(flags: ApiFlags): Promise<void> {
  const { projects } = await callApi<{ projects: ProjectView[] }>(flags.url, 'GET', '/projects');
  printList('projects', projects, projectRow, flags);
}

export async function showProject(project: string, flags: ApiFlags): Promise<void> {
  const view = await callApi<ProjectView>(flags.url, 'GET', projectPath(project));
  printResult(view, projectText(view), flags);
}

export async function addProject(name: string, flags: ProjectSettings): Promise<void> {
  const { url } = flags;
  const body = { ...changesOf(flags), name };
  // Nothing may fail after the project was added.
  const address = flags.json ? url : await clientUrl(url);
  const view = await callApi<ProjectView>(url, 'POST', '/projects', { body });
  const added = `added project ${view.name}; clients reach it at ${endpointOf({ url: address, project: view.name })}`;
  printResult(view, `${added}\n${endpointOf({ url: address })} has the servers of all projects`, flags);
}

export async function changeProject(project: string, flags: ProjectSettings): Promise<void> {
  const body = changesOf(flags);
  if (Object.keys(body).length === 0) {
    throw usageError(
      'Nothing to change: use --name, --description, --record-payloads, --retention-days or --names.',
    );
  }
  const view = await callApi<ProjectView>(flags.url, 'PATCH', projectPath(project), { body });
  printResult(view, projectText(view), flags);
}

export async function removeProject(project: string, flags: ApiFlags & { yes?: boolean }): Promise<number> {
  const { id, name, server_count, version } = await callApi<ProjectView>(
    flags.url,
    'GET',
    projectPath(project),
  );
  const contents = `its ${counted(server_count, 'server')}, its secrets and its records`;
  if (!(await confirmRemoval(`Remove the project ${name} with ${contents}?`, flags, 'needs-yes'))) {
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', projectPath(id), { version });
  printResult({ removed: name }, `removed project ${name}`, flags);
  return exitCodes.ok;
}

function changesOf({ name, description, recordPayloads, retentionDays, names }: ProjectSettings): object {
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
    ['retention', view.retention_days === null ? 'unlimited' : counted(view.retention_days, 'day')],
    ['tool names', view.names],
    ['created', localTime(view.created_at)],
  ]);
}
