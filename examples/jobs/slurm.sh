#!/bin/bash
# As it was written for Slurm: berth sbatch examples/jobs/slurm.sh
#SBATCH --job-name=hello
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --mem=200M
#SBATCH --time=00:10:00

srun echo "task $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"
