import type { Installation, ProductView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { usageError } from '../exit.ts';
import { inputName, readInput } from '../input.ts';
import type { ProjectFlags } from '../options.ts';
import { counted, localTime, noteMovedSecrets, printList, printResult } from '../output.ts';
import { removeConfirmed } from '../prompt.ts';

export async function listProducts(flags: ProjectFlags): Promise<void> {
  const path = projectPath(flags.project, 'products');
  const { products } = await callApi<{ products: ProductView[] }>(flags.url, 'GET', path);
  printList('products', products, productRow, flags);
}

export async function installProduct(file: string, flags: ProjectFlags): Promise<void> {
  const body = parseManifest(await readInput(file), inputName(file));
  const path = projectPath(flags.project, 'products');
  const installation = await callApi<Installation>(flags.url, 'POST', path, { body });
  noteMovedSecrets(installation);
  printResult(installation, installationText(installation), flags);
}

export function removeProduct(name: string, flags: ProjectFlags & { yes?: boolean }): Promise<number> {
  const question = `Remove the product ${name} and its servers from the project ${flags.project}?`;
  return removeConfirmed(flags, question, projectPath(flags.project, 'products', name), 'product', name);
}

function parseManifest(text: string, source: string): object {
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch (error) {
    throw usageError(`${source} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof manifest === 'object' && manifest !== null && !Array.isArray(manifest)) return manifest;
  throw usageError(`${source} is not a manifest: it must be an object with "name", "version" and "mcp".`);
}

export function installationText({ product, added, changed, removed, unchanged }: Installation): string {
  const changes = [
    ...added.map((name) => `+ ${name}`),
    ...changed.map((name) => `~ ${name}`),
    ...removed.map((name) => `- ${name}`),
  ];
  const rest = unchanged.length === 0 ? [] : [`${counted(unchanged.length, 'server')} unchanged`];
  const what = changes.length === 0 ? ['nothing changed', ...rest] : rest;
  return [
    `product ${product.name} ${product.version}${what.length === 0 ? '' : `: ${what.join(', ')}`}`,
    ...changes,
  ].join('\n  ');
}

function productRow({ name, version, servers, updated_at }: ProductView): string[] {
  return [name, version, localTime(updated_at), servers.join(', ')];
}
