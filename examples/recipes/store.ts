import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Recipe, type RecipeChanges, recipe } from './recipe.ts';

/** Stores each recipe in a file of its folder. The id is the file's name. */
export class RecipeStore {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async create(given: Recipe): Promise<string> {
    await mkdir(this.folder, { recursive: true });
    const name = slugOf(given.title);
    for (let number = 1; ; number++) {
      const id = number === 1 ? name : `${name}-${number}`;
      try {
        // Fails if the file exists, even if another process has just created it.
        await writeFile(this.pathOf(id), textOf(given), { flag: 'wx' });
        return id;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  }

  async get(id: string): Promise<Recipe> {
    try {
      return recipe.parse(JSON.parse(await readFile(this.pathOf(id), 'utf8')));
    } catch (error) {
      throw missing(id, error);
    }
  }

  async list(): Promise<{ id: string; title: string }[]> {
    const files = await readdir(this.folder).catch(() => []);
    const ids = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
    return Promise.all(ids.toSorted().map(async (id) => ({ id, title: (await this.get(id)).title })));
  }

  async update(id: string, changes: RecipeChanges): Promise<Recipe> {
    const changed = recipe.parse({ ...(await this.get(id)), ...changes });
    // Concurrent readers see the old file or the new one, never a partial one.
    const draft = join(this.folder, `.${randomUUID()}`);
    await writeFile(draft, textOf(changed));
    await rename(draft, this.pathOf(id));
    return changed;
  }

  async delete(id: string): Promise<void> {
    await rm(this.pathOf(id)).catch((error: unknown) => {
      throw missing(id, error);
    });
  }

  /** Callers choose ids, so an id must not lead out of the folder. */
  private pathOf(id: string): string {
    if (!/^[\p{L}\p{N}-]+$/u.test(id)) throw new Error(`"${id}" is not the id of a recipe`);
    return join(this.folder, `${id}.json`);
  }
}

function slugOf(title: string): string {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['recipe'];
  return words.join('-').slice(0, 60);
}

function textOf(given: Recipe): string {
  return `${JSON.stringify(given, null, 2)}\n`;
}

function missing(id: string, error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' ? new Error(`there is no recipe "${id}"`) : error;
}
