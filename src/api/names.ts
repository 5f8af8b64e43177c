import { needDatabase, type Services } from './services.ts';

/** The name of a key or a group, by id. */
export type Names = (id: string) => string;

export async function readNames(services: Services): Promise<Names> {
  const { access } = needDatabase(services).store;
  const [keys, groups] = await Promise.all([access.listKeys(), access.listGroups()]);
  const names = new Map([...keys, ...groups].map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}
