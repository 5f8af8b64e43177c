import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { jsonOption, projectOption, urlOption, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard product install manifest.json
  switchboard product install manifest.json -P research
  switchboard product rm acme-tools

Installing a newer manifest of a product changes what differs: + added, ~ changed, - removed.
"rm" asks first on a terminal, and does not in scripts.`;

export function addProductCommands(program: Command, setExitCode: SetExitCode): void {
  const product = program
    .command('product')
    .description('install and remove products, which bring servers into a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  product
    .command('ls')
    .description('list the products of a project')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (flags) => (await load()).listProducts(flags));

  product
    .command('install')
    .description('install or upgrade a product')
    .argument('<manifest>', 'a file of JSON; - reads stdin')
    .addOption(projectOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (manifest, flags) => (await load()).installProduct(manifest, flags));

  product
    .command('rm')
    .description('remove a product with its servers')
    .argument('<name>')
    .addOption(projectOption())
    .addOption(yesOption())
    .addOption(urlOption())
    .addOption(jsonOption())
    .action(async (name, flags) => setExitCode(await (await load()).removeProduct(name, flags)));
}
