import { dockerContract } from './docker-contract.ts';

dockerContract('gvisor');
